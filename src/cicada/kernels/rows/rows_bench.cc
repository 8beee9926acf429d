// Row functions at SmolLM2's widths.
#include "cicada/kernels/bench_support.h"
#include "cicada/kernels/random_data.h"
#include "cicada/kernels/rows/rows.h"

namespace cicada::kernels {
namespace {

using platform::IsaLevel;

// body(kernels, x, y) once an iteration. Shapes: x, y [n].
template <typename Body>
void add_row_benchmark(const std::string& name, std::size_t n, Body body) {
  add_benchmark("rows/" + name, "n" + std::to_string(n),
                [=](benchmark::State& state, IsaLevel level) {
                  const std::vector<float> x = random_floats(n, 1);
                  std::vector<float> y = random_floats(n, 2);
                  const RowKernels& kernels = row_kernels(level);
                  for (auto iteration : state) {
                    body(kernels, x.data(), y.data());
                    benchmark::DoNotOptimize(y.data());
                    benchmark::ClobberMemory();
                  }
                  set_rates(state, static_cast<double>(n * sizeof(float)), 0.0);
                });
}

const bool kRegistered = [] {
  for (const std::size_t n : {576U, 1536U}) {
    add_row_benchmark("rms_norm", n, [n](const RowKernels& k, const float* x, float* y) {
      k.rms_norm(x, x, 1e-5F, n, y);
    });
    add_row_benchmark("add", n,
                      [n](const RowKernels& k, const float* x, float* y) { k.add(x, n, y); });
    add_row_benchmark("quantize", n, [n](const RowKernels& k, const float* x, float*) {
      static QuantBlock blocks[48];
      k.quantize(x, n, blocks, 1);
      benchmark::DoNotOptimize(&blocks[0]);
    });
    add_row_benchmark("quantize_wide", n, [n](const RowKernels& k, const float* x, float*) {
      static WideQuantBlock blocks[48];
      k.quantize_wide(x, n, blocks, 1);
      benchmark::DoNotOptimize(&blocks[0]);
    });
  }
  for (const std::size_t n : {64U, 256U}) {
    add_row_benchmark("rope", n, [n](const RowKernels& k, const float* x, float* y) {
      k.rope(x, x + n / 2, n / 2, y);
    });
  }
  return true;
}();

}  // namespace
}  // namespace cicada::kernels
