// Attention over one split of 512 keys: one decoded row with its group of heads, and a block of a
// prefill chunk.
#include <memory>

#include "cicada/kernels/attention/attention.h"
#include "cicada/kernels/bench_support.h"
#include "cicada/kernels/random_data.h"

namespace cicada::kernels {
namespace {

using platform::IsaLevel;

void run(benchmark::State& state, IsaLevel level, CacheType type, std::size_t head_dim,
         std::size_t num_rows) {
  constexpr std::size_t kPages = kSplitKeys / kKeyTile;
  CachedHead head{.slabs_in_page = kKeyTile / kSlabTokens,
                  .head_dim = head_dim,
                  .value_dim = head_dim,
                  .key_type = type,
                  .value_type = type};
  const std::size_t slab_bytes = head.slab_bytes();
  std::vector<std::byte> memory(kSplitKeys / kSlabTokens * slab_bytes);
  const std::vector<float> numbers = random_floats(kSplitKeys * head_dim, 1);
  const AttentionKernels& kernels = attention_kernels(level);
  for (std::size_t j = 0; j < kSplitKeys; ++j) {
    std::byte* slab = &memory[j / kSlabTokens * slab_bytes];
    const float* x = &numbers[j * head_dim];
    kernels.store_key(type, x, head_dim, j % kSlabTokens, slab);
    kernels.store_value(type, x, head_dim, j % kSlabTokens, slab + head.key_bytes());
  }
  std::vector<const std::byte*> pages;
  for (std::size_t p = 0; p < kPages; ++p) {
    pages.push_back(&memory[p * head.slabs_in_page * slab_bytes]);
  }
  head.pages = pages.data();
  const std::vector<float> q = random_floats(num_rows * head_dim, 2, 0.1F);
  std::vector<float> out(num_rows * head_dim);
  std::vector<float> stats(num_rows * 2);
  std::vector<float> scratch(attention_scratch_floats(head_dim, head_dim, num_rows) + 16);
  void* aligned = scratch.data();
  std::size_t space = scratch.size() * sizeof(float);
  std::align(64, 64, aligned, space);
  std::vector<AttentionRow> rows;
  for (std::size_t i = 0; i < num_rows; ++i) {
    rows.push_back({.q = &q[i * head_dim],
                    .position = kSplitKeys - 1,
                    .out = &out[i * head_dim],
                    .stats = &stats[2 * i]});
  }
  for (auto iteration : state) {
    kernels.attend({.cache = head,
                    .key_end = kSplitKeys,
                    .rows = rows.data(),
                    .num_rows = num_rows,
                    .scratch = static_cast<float*>(aligned)});
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  set_rates(state, static_cast<double>(memory.size()),
            static_cast<double>(2 * num_rows * kSplitKeys * head_dim));
}

const bool kRegistered = [] {
  for (const CacheType type : {CacheType::kF16, CacheType::kQ8, CacheType::kQ6, CacheType::kQ4}) {
    for (const std::size_t head_dim : {64U, 128U, 256U}) {
      for (const std::size_t rows : {1U, 3U, 96U}) {
        add_benchmark("attention/" + std::string(cache_type_name(type)),
                      "rows" + std::to_string(rows) + "_h" + std::to_string(head_dim) + "_keys512",
                      [=](benchmark::State& state, IsaLevel level) {
                        run(state, level, type, head_dim, rows);
                      });
      }
    }
  }
  return true;
}();

}  // namespace
}  // namespace cicada::kernels
