// Products: one row streams the weights and is bound by memory, many rows by arithmetic. The
// weights (n = 8192) are larger than the second-level cache.
#include <fmt/format.h>

#include "cicada/kernels/bench_support.h"
#include "cicada/kernels/matmul/layout.h"
#include "cicada/kernels/matmul/matmul.h"
#include "cicada/kernels/matmul/pack.h"
#include "cicada/kernels/random_data.h"
#include "cicada/kernels/rows/rows.h"
#include "cicada/tensor/buffer.h"
#include "cicada/tensor/dtype.h"

namespace cicada::kernels {
namespace {

using platform::IsaLevel;
using tensor::DType;

struct Shape {
  InputFormat format;
  DType dtype;
  std::size_t m;
};

constexpr std::size_t kRows = 8192;
constexpr std::size_t kColumns = 768;

void run(benchmark::State& state, IsaLevel level, const Shape& shape) {
  const std::vector<std::byte> file = random_rows(shape.dtype, 64, kColumns, 1);
  auto packed = tensor::Buffer::create(packed_bytes(shape.dtype, kRows, kColumns));
  if (!packed) {
    state.SkipWithError("no memory");
    return;
  }
  const std::size_t part = packed_bytes(shape.dtype, 64, kColumns);
  for (std::size_t row = 0; row < kRows; row += 64) {
    pack_groups(shape.dtype, file, 64, kColumns,
                packed->as<std::byte>().subspan(row / 64 * part, part), {}, 0, num_groups(64));
  }
  const std::vector<float> x = random_floats(shape.m * kColumns, 2);
  std::vector<QuantBlock> narrow(shape.m * kColumns / 32);
  std::vector<WideQuantBlock> wide(narrow.size());
  for (std::size_t row = 0; row < shape.m; ++row) {
    const std::size_t first = quant_block_index(shape.m, kColumns / 32, row, 0);
    const std::size_t stride = tile_width(shape.m, row / kTileRows);
    const float* values = x.data() + row * kColumns;
    row_kernels(level).quantize(values, kColumns, narrow.data() + first, stride);
    row_kernels(level).quantize_wide(values, kColumns, wide.data() + first, stride);
  }
  const void* data = x.data();
  if (shape.format == InputFormat::kInt8) data = narrow.data();
  if (shape.format == InputFormat::kInt15) data = wide.data();
  std::vector<float> y(shape.m * kRows);
  const MatmulArgs args{
      .w = {.dtype = shape.dtype, .data = packed->data(), .rows = kRows, .columns = kColumns},
      .x = {.format = shape.format, .rows = shape.m, .columns = kColumns, .data = data},
      .y = y.data(),
      .ldy = kRows};
  for (auto iteration : state) {
    matmul_kernels(level).matmul(args, 0, num_groups(kRows));
    benchmark::DoNotOptimize(y.data());
    benchmark::ClobberMemory();
  }
  set_rates(state, static_cast<double>(packed->size_bytes()),
            static_cast<double>(shape.m * kRows * kColumns));
}

const bool kRegistered = [] {
  for (const tensor::DTypeInfo& type : tensor::kDTypes) {
    for (const InputFormat format : {InputFormat::kInt8, InputFormat::kInt15, InputFormat::kF32}) {
      if (is_float(type.dtype) != (format == InputFormat::kF32)) continue;
      for (const std::size_t m : {1U, 16U}) {
        std::string operation = "matmul/" + std::string(input_format_name(format));
        operation = operation.substr(0, operation.find('/', 7)) + "_" + std::string(type.name);
        add_benchmark(operation, fmt::format("m{}_n{}_k{}", m, kRows, kColumns),
                      [=, dtype = type.dtype](benchmark::State& state, IsaLevel level) {
                        run(state, level, {.format = format, .dtype = dtype, .m = m});
                      });
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace cicada::kernels
