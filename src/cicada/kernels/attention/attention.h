// Attention of some query rows over one range of cached keys and values of one KV head, and writing
// into that cache.
//
// The cache is read in tiles of 64 keys at absolute positions that are multiples of 64, whatever
// the page size (cache.h).
//
// Numbers, for each query row alone (q is scaled already,
//          by log2 e too: weights are powers of two). Score: f16 keys, one fma chain over
//          head_dim ascending; packed keys, the query as integers with one scale, of 15 bits for q8
//          and of 8 for q6 and q4, exact sums over groups of 32, one fma a group ascending, times
//          the query's scale; then the static bias of the keys, one fma chain over the angles, and
//          the bias of the distance. Keys that the row does not see contribute exactly 0. Per tile:
//          m' = max(m, scores), l = l * 2^(m - m') + sum of 2^(s - m'), o likewise; f16 values, one
//          fma a key ascending; packed values, the weights times the values' scales as integers of
//          15 bits for q8 and of 8 for q6 and q4 with one scale a group, exact sums over the tile,
//          one fma. A range is at most
//          kSplitKeys long and starts at a multiple of it; ranges are merged in ascending order
//          (merge()). The bits of a row never depend on its neighbours, and are the same on every
//          level.
// Threads: callable on distinct rows or ranges at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cicada/kernels/attention/cache.h"
#include "cicada/platform/cpu.h"

namespace cicada::kernels {

inline constexpr std::size_t kKeyTile = 64;
inline constexpr std::size_t kSplitKeys = 512;
inline constexpr std::size_t kSplitTiles = kSplitKeys / kKeyTile;

inline constexpr std::size_t kMostHeadDim = 1024;
inline constexpr std::size_t kMostRopePairs = kMostHeadDim / 2;

// A bias, times log2 e, added to scores by distance d = position - key: `reversed[limit - d]` for d
// < limit and `reversed[0]` beyond. 16 further copies of reversed[0] stand before it and 16
// readable elements after reversed[limit].
struct DistanceBias {
  const float* reversed = nullptr;  // none: no bias
  std::int64_t limit = 0;
};

// Angles of RoPE for the static bias of keys that were cached without it (key_bias.h): `half`
// pairs, filled up to a multiple of 16 with pairs that add nothing.
struct KeyBias {
  const float* tile_angles = nullptr;   // [tiles][2][half]: cosines and sines of a tile's first
                                        // position; none: no bias
  const float* place_angles = nullptr;  // [2 * half][64]: of the places in a tile
  std::size_t half = 0;
};

// Whether the tile of `key` is one of `tiles`, those of its split by bit.
constexpr bool has_tile_of(std::uint8_t tiles, std::int64_t key) {
  return ((tiles >> (static_cast<std::uint64_t>(key) / kKeyTile % kSplitTiles)) & 1) != 0;
}

// One query row and where its partial result goes.
struct AttentionRow {
  const float* q = nullptr;         // [head_dim], scaled, by log2 e too
  const float* packed_q = nullptr;  // what pack_query() makes of it; none: attend() makes it itself
  std::int64_t position = 0;        // sees keys up to this one
  std::int64_t first_key = 0;       // and from this one
  std::int64_t sinks = 0;           // and the first ones, this many of them
  std::uint8_t tiles = 0xFF;  // and of those only the ones in these tiles of the split, by bit
  DistanceBias bias;
  const float* key_bias = nullptr;  // [2 * half + 1]: factors of the cosines, of the sines, and
                                    // what is the same at every key
  float* out = nullptr;             // [value_dim rounded up to 16]: sum of weights times values
  float* stats = nullptr;           // [2]: largest score, sum of weights

  std::int64_t last_sink() const { return sinks - 1 < position ? sinks - 1 : position; }
  bool has_tile_of(std::int64_t key) const { return kernels::has_tile_of(tiles, key); }
};

// A call of attend().
struct AttentionCall {
  CachedHead cache;
  KeyBias key_bias;
  std::int64_t key_begin = 0;  // keys [key_begin, key_end) lie in one split
  std::int64_t key_end = 0;
  // Keys [next_begin, next_end) that this thread will probably read next, to ask for in time.
  CachedHead next;
  std::int64_t next_begin = 0;
  std::int64_t next_end = 0;
  const AttentionRow* rows = nullptr;  // positions ascend, unless all rows see the whole range
  std::size_t num_rows = 0;
  float* scratch = nullptr;  // [attention_scratch_floats], aligned to 64 bytes
};

// Floats that one packed query takes (packed_scores-inl.h), a multiple of 16.
constexpr std::size_t packed_query_floats(std::size_t head_dim) {
  return (1 + cache_scale_groups(head_dim) + 2 * cache_key_rows(head_dim) + 15) / 16 * 16;
}

// Floats of scratch that a call with `num_rows` rows needs: a tile as float, or as bytes, the
// scales of its values, and the packed queries.
constexpr std::size_t attention_scratch_floats(std::size_t head_dim, std::size_t value_dim,
                                               std::size_t num_rows) {
  const std::size_t key_groups = cache_scale_groups(head_dim);
  const std::size_t value_groups = cache_scale_groups(value_dim);
  return kKeyTile * kScaleGroup * (key_groups + value_groups) + value_groups * (kKeyTile + 16) +
         num_rows * packed_query_floats(head_dim);
}

// How much one query can get from tiles of a cache with bounds, at most: for each tile the greatest
// score that any keys within the bounds could have, what the static bias of the keys and the bias
// of the distance add at most included.
struct TileBoundsCall {
  CachedHead cache;
  KeyBias key_bias;
  std::size_t tile_begin = 0;  // tiles [tile_begin, tile_end), whose keys all lie before the query
  std::size_t tile_end = 0;
  const AttentionRow* row = nullptr;  // its query, position and biases
  float* scores = nullptr;            // [tile_end]: those of the range are written
};

// A row that has seen no key yet: what merge() starts from.
inline constexpr float kNoScore = -1e30F;

struct AttentionKernels {
  // Partial results of the rows.
  void (*attend)(const AttentionCall& call);

  // The form in which a query meets packed keys. Shapes: q [head_dim], out [packed_query_floats].
  void (*pack_query)(CacheType keys, const float* q, std::size_t head_dim, float* out);

  // The bounds of a tile's keys from the keys, all of them stored. The page of the tile's last slab
  // is nobody else's.
  void (*bound_keys)(const CachedHead& cache, std::size_t tile, std::byte* page);
  void (*score_bounds)(const TileBoundsCall& call);

  // Folds a partial result into a running one. Shapes: [value_dim rounded up to 16], [2].
  void (*merge)(const float* out, const float* stats, std::size_t value_dim, float* total_out,
                float* total_stats);

  // y = total / sum of weights. Shapes: y [value_dim].
  void (*finish)(const float* total_out, const float* total_stats, std::size_t value_dim, float* y);

  // Writes a key or value, x [head_dim] or [value_dim], into place `slot` of a slab's keys or
  // values. Numbers are clamped to the finite range of float16, NaN to the largest: what a page
  // holds is always finite. Positions of a slab may be written at once.
  void (*store_key)(CacheType type, const float* x, std::size_t head_dim, std::size_t slot,
                    std::byte* slab);
  void (*store_value)(CacheType type, const float* x, std::size_t value_dim, std::size_t slot,
                      std::byte* slab);
};

// The functions of a level; platform::is_supported says which may be called.
const AttentionKernels& attention_kernels(platform::IsaLevel level);

}  // namespace cicada::kernels
