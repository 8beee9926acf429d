// Attention over one split of 512 keys: one decoded row with its group of heads, and a block of a
// prefill chunk.
#include "cicada/kernels/attention/attention.h"
#include "cicada/kernels/bench_support.h"
#include "cicada/kernels/random_data.h"
#include "cicada/tensor/half.h"

namespace cicada::kernels {
namespace {

using platform::IsaLevel;

void run(benchmark::State& state, IsaLevel level, std::size_t head_dim, std::size_t num_rows) {
  const std::size_t half = kKeyTile * head_dim;
  const std::size_t page = 2 * half;  // in float16
  constexpr std::size_t kPages = kSplitKeys / kKeyTile;
  std::vector<std::uint16_t> memory(kPages * page);
  const std::vector<float> numbers = random_floats(memory.size(), 1);
  std::transform(numbers.begin(), numbers.end(), memory.begin(), tensor::f32_to_f16);
  std::vector<const std::byte*> pages;
  for (std::size_t p = 0; p < kPages; ++p) {
    pages.push_back(reinterpret_cast<const std::byte*>(&memory[p * page]));
  }
  const CachedTiles cache{.pages = pages.data(),
                          .value_offset_bytes = 2 * half,
                          .head_dim = head_dim,
                          .value_dim = head_dim};
  const std::vector<float> q = random_floats(num_rows * head_dim, 2, 0.1F);
  std::vector<float> out(num_rows * head_dim);
  std::vector<float> stats(num_rows * 2);
  std::vector<float> scratch(attention_scratch_floats(head_dim, head_dim));
  std::vector<AttentionRow> rows;
  for (std::size_t i = 0; i < num_rows; ++i) {
    rows.push_back({.q = &q[i * head_dim],
                    .position = kSplitKeys - 1,
                    .out = &out[i * head_dim],
                    .stats = &stats[2 * i]});
  }
  for (auto iteration : state) {
    attention_kernels(level).attend(cache, 0, kSplitKeys, rows.data(), num_rows, scratch.data());
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  set_rates(state, static_cast<double>(memory.size() * sizeof(std::uint16_t)),
            static_cast<double>(2 * num_rows * kSplitKeys * head_dim));
}

const bool kRegistered = [] {
  for (const std::size_t head_dim : {64U, 128U, 256U}) {
    for (const std::size_t rows : {1U, 3U, 96U}) {
      add_benchmark(
          "attention/f32_f16",
          "rows" + std::to_string(rows) + "_h" + std::to_string(head_dim) + "_keys512",
          [=](benchmark::State& state, IsaLevel level) { run(state, level, head_dim, rows); });
    }
  }
  return true;
}();

}  // namespace
}  // namespace cicada::kernels
