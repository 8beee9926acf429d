// Attention of some query rows over one range of cached keys and values of one KV head.
//
// The cache is read in tiles of 64 keys at absolute positions that are multiples of 64, whatever
// the page size; a tile's keys are 4 sub-tiles [head_dim][16] and its values [64][value_dim],
// float16.
//
// Numbers, for each query row alone: score[j] = fma chain over head_dim ascending (q is scaled
//          already) + bias of the distance; keys outside [first_key, position] contribute exactly
//          0. Per tile: m' = max(m, scores), l = l * e^(m - m') + sum of e^(s - m'), o likewise,
//          one fma a key ascending. A range is at most kSplitKeys long and starts at a multiple of
//          it; ranges are merged in ascending order (merge()). The bits of a row never depend on
//          its neighbours, and are the same on every level.
// Threads: callable on distinct rows or ranges at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cicada/platform/cpu.h"

namespace cicada::kernels {

inline constexpr std::size_t kKeyTile = 64;
inline constexpr std::size_t kSplitKeys = 512;

// Where keys and values of one KV head lie: in every page of 64 positions at the same offsets.
struct CachedTiles {
  const std::byte* const* pages = nullptr;  // [tiles]
  std::size_t key_offset_bytes = 0;         // of 4 sub-tiles [head_dim][16]
  std::size_t value_offset_bytes = 0;       // of [64][value_dim]
  std::size_t head_dim = 0;
  std::size_t value_dim = 0;

  const std::uint16_t* keys(std::size_t tile) const {
    return reinterpret_cast<const std::uint16_t*>(pages[tile] + key_offset_bytes);
  }
  const std::uint16_t* values(std::size_t tile) const {
    return reinterpret_cast<const std::uint16_t*>(pages[tile] + value_offset_bytes);
  }
};

// A bias added to scores by distance d = position - key: `reversed[limit - d]` for d < limit and
// `reversed[0]` beyond. 16 further copies of reversed[0] stand before it and 16 readable elements
// after reversed[limit].
struct DistanceBias {
  const float* reversed = nullptr;  // none: no bias
  std::int64_t limit = 0;
};

// One query row and where its partial result goes.
struct AttentionRow {
  const float* q = nullptr;    // [head_dim], scaled
  std::int64_t position = 0;   // sees keys up to this one
  std::int64_t first_key = 0;  // and from this one
  DistanceBias bias;
  float* out = nullptr;    // [value_dim rounded up to 16]: sum of weights times values
  float* stats = nullptr;  // [2]: largest score, sum of weights
};

// Scratch of one call: floats needed for a head.
constexpr std::size_t attention_scratch_floats(std::size_t head_dim, std::size_t value_dim) {
  return kKeyTile * (head_dim + (value_dim + 15) / 16 * 16);
}

// A row that has seen no key yet: what merge() starts from.
inline constexpr float kNoScore = -1e30F;

struct AttentionKernels {
  // Partial results of `rows` over keys [key_begin, key_end), which lies in one split.
  void (*attend)(const CachedTiles& cache, std::int64_t key_begin, std::int64_t key_end,
                 const AttentionRow* rows, std::size_t num_rows, float* scratch);

  // Folds a partial result into a running one. Shapes: [value_dim rounded up to 16], [2].
  void (*merge)(const float* out, const float* stats, std::size_t value_dim, float* total_out,
                float* total_stats);

  // y = total / sum of weights. Shapes: y [value_dim].
  void (*finish)(const float* total_out, const float* total_stats, std::size_t value_dim, float* y);
};

// The functions of a level; platform::is_supported says which may be called.
const AttentionKernels& attention_kernels(platform::IsaLevel level);

}  // namespace cicada::kernels
