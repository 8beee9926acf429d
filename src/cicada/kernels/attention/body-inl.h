// Attention of every level; see attention.h for the contract.
#pragma once

#include "cicada/kernels/attention/attention.h"
#include "cicada/kernels/attention/bounds-inl.h"
#include "cicada/kernels/attention/float_tile-inl.h"
#include "cicada/kernels/attention/packed_scores-inl.h"
#include "cicada/kernels/attention/packed_values-inl.h"
#include "cicada/kernels/attention/store-inl.h"
#include "cicada/kernels/attention/weigh-inl.h"
#include "cicada/kernels/simd-inl.h"

namespace cicada::kernels {
namespace {

// Up to this many rows read the cache as it is; more share a tile that was widened once.
inline constexpr std::size_t kDirectRows = 2 * kRowBlock;

// One call's constants and scratch.
struct Reader {
  const AttentionCall& call;
  TileReader tiles;
  std::size_t width;         // of outputs
  std::size_t key_planes;    // bytes of a slab's packed keys before its scales
  std::size_t value_planes;  // and of its values
  bool prefetches;           // the next tile, while the cache is read as it is
  float* wide_keys;          // a tile's as float, or as bytes; null: read as they are
  float* wide_values;
  float* value_scales;  // of packed values: share_scales()
  float* queries;       // packed by this call, query_floats each
  std::size_t query_floats;

  CICADA_INLINE PackedQuery query(std::size_t row) const {
    const float* packed = call.rows[row].packed_q;
    return PackedQuery(packed != nullptr ? packed : queries + row * query_floats,
                       call.cache.head_dim);
  }
};

template <std::size_t kRows>
CICADA_INLINE void score_packed_rows(const Reader& reader, const Tile& tile, std::size_t first_row,
                                     float (*scores)[kKeyTile]) {
  const CachedHead& cache = reader.call.cache;
  PackedQuery q[kRowBlock];
  for (std::size_t r = 0; r < kRows; ++r) q[r] = reader.query(first_row + r);
  PackedKeys keys{.slabs = {},
                  .scales = {},
                  .next = {},
                  .offset = cache_offset(cache.key_type),
                  .head_dim = cache.head_dim};
  const std::size_t wide_bytes = cache_key_rows(cache.head_dim) * kRowBytes;
  for (std::size_t s = 0; s < kTileSlabs; ++s) {
    keys.scales[s] = tile.now.keys[s] + reader.key_planes;
    keys.slabs[s] = reader.wide_keys == nullptr
                        ? tile.now.keys[s]
                        : reinterpret_cast<const std::byte*>(reader.wide_keys) + s * wide_bytes;
    if (reader.prefetches) keys.next[s] = tile.next.keys[s];
  }
  if (cache.key_type == CacheType::kQ8) {
    score_packed<kRows, CacheType::kQ8, query_bytes(CacheType::kQ8)>(keys, q, scores);
  } else if (reader.wide_keys != nullptr) {
    score_packed<kRows, CacheType::kQ8, 1>(keys, q, scores);
  } else if (cache.key_type == CacheType::kQ6) {
    score_packed<kRows, CacheType::kQ6, 1>(keys, q, scores);
  } else {
    score_packed<kRows, CacheType::kQ4, 1>(keys, q, scores);
  }
}

template <std::size_t kRows>
CICADA_INLINE void score_rows(const Reader& reader, const Tile& tile, std::size_t first_row,
                              float (*scores)[kKeyTile]) {
  const CachedHead& cache = reader.call.cache;
  if (cache.key_type != CacheType::kF16) {
    score_packed_rows<kRows>(reader, tile, first_row, scores);
    return;
  }
  const float* q[kRowBlock];
  float* out[kRowBlock];
  for (std::size_t r = 0; r < kRows; ++r) {
    q[r] = reader.call.rows[first_row + r].q;
    out[r] = scores[r];
    for (std::size_t i = 0; i < kTileVectors; ++i) store(scores[r] + 16 * i, zero());
  }
  if (reader.wide_keys == nullptr) {
    multiply_add<kRows, kTileVectors>(q, cache.head_dim, CachedKeys{tile}, 0, out);
  } else {
    multiply_add<kRows, kTileVectors>(q, cache.head_dim, FloatRows{reader.wide_keys, kKeyTile}, 0,
                                      out);
  }
}

template <std::size_t kRows>
CICADA_INLINE void add_packed_rows(const Reader& reader, const Tile& tile,
                                   const WeighedRows& weighed) {
  const CachedHead& cache = reader.call.cache;
  PackedValues values{.slabs = {},
                      .scales = {},
                      .next = {},
                      .shared_scales = reader.value_scales,
                      .value_dim = cache.value_dim};
  const std::size_t wide_bytes = kSlabTokens / 4 * cache_value_rows(cache.value_dim) * kRowBytes;
  for (std::size_t s = 0; s < kTileSlabs; ++s) {
    values.slabs[s] = reader.wide_values == nullptr
                          ? tile.now.values[s]
                          : reinterpret_cast<const std::byte*>(reader.wide_values) + s * wide_bytes;
    values.scales[s] = tile.now.values[s] + reader.value_planes;
    if (reader.prefetches) values.next[s] = tile.next.values[s];
  }
  if (reader.wide_values != nullptr) {
    if (cache.value_type == CacheType::kQ8) {
      add_packed<kRows, CacheType::kQ8, true, weight_bytes(CacheType::kQ8)>(values, weighed);
    } else {
      add_packed<kRows, CacheType::kQ8, true, 1>(values, weighed);
    }
  } else if (cache.value_type == CacheType::kQ8) {
    add_packed<kRows, CacheType::kQ8, false, weight_bytes(CacheType::kQ8)>(values, weighed);
  } else if (cache.value_type == CacheType::kQ6) {
    add_packed<kRows, CacheType::kQ6, false, 1>(values, weighed);
  } else {
    add_packed<kRows, CacheType::kQ4, false, 1>(values, weighed);
  }
}

template <std::size_t kRows>
CICADA_INLINE void add_values(const Reader& reader, const Tile& tile, const WeighedRows& weighed) {
  const CachedHead& cache = reader.call.cache;
  if (cache.value_type != CacheType::kF16) {
    add_packed_rows<kRows>(reader, tile, weighed);
    return;
  }
  const float* weights[kRowBlock];
  float* out[kRowBlock];
  for (std::size_t r = 0; r < kRows; ++r) {
    weights[r] = weighed.weights[r];
    out[r] = weighed.rows[r].out;
  }
  if (reader.wide_values == nullptr) {
    multiply_add_wide<kRows>(weights, kKeyTile, CachedValues{tile, cache.value_dim}, reader.width,
                             out);
  } else {
    multiply_add_wide<kRows>(weights, kKeyTile, FloatRows{reader.wide_values, reader.width},
                             reader.width, out);
  }
}

// Makes of a tile what its rows share: floats, or bytes, where there are many, and the scales of
// packed values.
void prepare_tile(const Reader& reader, const Tile& tile) {
  const CachedHead& cache = reader.call.cache;
  if (reader.wide_keys != nullptr) {
    auto* bytes = reinterpret_cast<std::uint8_t*>(reader.wide_keys);
    if (cache.key_type == CacheType::kF16) widen_keys(tile, cache.head_dim, reader.wide_keys);
    if (cache.key_type == CacheType::kQ6) unpack_keys<CacheType::kQ6>(tile, cache.head_dim, bytes);
    if (cache.key_type == CacheType::kQ4) unpack_keys<CacheType::kQ4>(tile, cache.head_dim, bytes);
  }
  if (reader.wide_values != nullptr) {
    auto* bytes = reinterpret_cast<std::uint8_t*>(reader.wide_values);
    const std::size_t dim = cache.value_dim;
    if (cache.value_type == CacheType::kF16) widen_values(tile, dim, reader.wide_values);
    if (cache.value_type == CacheType::kQ8) unpack_values<CacheType::kQ8>(tile, dim, bytes);
    if (cache.value_type == CacheType::kQ6) unpack_values<CacheType::kQ6>(tile, dim, bytes);
    if (cache.value_type == CacheType::kQ4) unpack_values<CacheType::kQ4>(tile, dim, bytes);
  }
  if (cache.value_type != CacheType::kF16) {
    const std::byte* scales[kTileSlabs];
    for (std::size_t s = 0; s < kTileSlabs; ++s)
      scales[s] = tile.now.values[s] + reader.value_planes;
    share_scales(scales, cache_scale_groups(cache.value_dim),
                 largest_weight(weight_bytes(cache.value_type)), reader.value_scales);
  }
}

template <std::size_t kRows>
void attend_rows(const Reader& reader, const Tile& tile, std::int64_t tile_begin,
                 std::size_t first_row) {
  WeighedRows block;
  block.rows = reader.call.rows + first_row;
  block.tile_begin = tile_begin;
  score_rows<kRows>(reader, tile, first_row, block.weights);
  if (reader.call.key_bias.tile_angles != nullptr) {
    const auto index = static_cast<std::size_t>(tile_begin) / kKeyTile;
    add_key_bias<kRows>(reader.call.key_bias, block.rows, index, block.weights);
  }
  weigh<kRows>(reader.width, block);
  add_values<kRows>(reader, tile, block);
}

CICADA_INLINE bool sees(const AttentionRow& row, std::int64_t tile_begin) {
  if (row.position < tile_begin || !row.has_tile_of(tile_begin)) return false;
  return row.first_key < tile_begin + static_cast<std::int64_t>(kKeyTile) || row.sinks > tile_begin;
}

// All rows over the tile that begins at `begin`. Rows are in ascending positions, so the first of a
// block that see nothing here are skipped.
CICADA_INLINE void attend_tile(const Reader& reader, const Tile& tile, std::int64_t begin) {
  const std::size_t num_rows = reader.call.num_rows;
  for (std::size_t r = 0; r < num_rows;) {
    if (!sees(reader.call.rows[r], begin)) {
      ++r;
      continue;
    }
    const std::size_t left = num_rows - r;
    if (left >= kRowBlock) {
      attend_rows<kRowBlock>(reader, tile, begin, r);
      r += kRowBlock;
    } else if (left == 3) {
      attend_rows<3>(reader, tile, begin, r);
      r += 3;
    } else if (left == 2) {
      attend_rows<2>(reader, tile, begin, r);
      r += 2;
    } else {
      attend_rows<1>(reader, tile, begin, r);
      r += 1;
    }
  }
}

// Which keys of a call's range any of its rows sees: [first, last], and those before `sinks`, where
// they lie in `tiles`.
struct Seen {
  std::int64_t first;
  std::int64_t last;
  std::int64_t sinks;
  std::uint8_t tiles;

  // The tile at or after `begin` that a row sees; beyond `last` when there is none.
  CICADA_INLINE std::int64_t tile_from(std::int64_t begin) const {
    constexpr auto kTile = static_cast<std::int64_t>(kKeyTile);
    const std::int64_t first_tile = first / kTile * kTile;
    if (begin >= sinks && begin < first_tile) begin = first_tile;
    while (begin <= last && !has_tile_of(tiles, begin)) begin += kTile;
    return begin;
  }
};

CICADA_INLINE Seen seen_keys(const AttentionCall& call) {
  Seen seen{.first = call.key_end, .last = call.key_begin - 1, .sinks = 0, .tiles = 0};
  for (std::size_t r = 0; r < call.num_rows; ++r) {
    const AttentionRow& row = call.rows[r];
    if (row.first_key < seen.first) seen.first = row.first_key;
    if (row.position > seen.last) seen.last = row.position;
    if (row.sinks > seen.sinks) seen.sinks = row.sinks;
    seen.tiles = static_cast<std::uint8_t>(seen.tiles | row.tiles);
  }
  if (seen.first < call.key_begin) seen.first = call.key_begin;
  if (seen.last >= call.key_end) seen.last = call.key_end - 1;
  return seen;
}

// Reads keys [first, last] of a head.
CICADA_INLINE TileReader tiles_of(const CachedHead& cache, std::int64_t first, std::int64_t last) {
  constexpr auto kSlab = static_cast<std::int64_t>(kSlabTokens);
  return {.pages = cache.pages,
          .offset_bytes = cache.offset_bytes,
          .key_bytes = cache.key_bytes(),
          .slab_bytes = cache.slab_bytes(),
          .page_shift = static_cast<unsigned>(__builtin_ctzll(cache.slabs_in_page)),
          .first_slab = first / kSlab,
          .last_slab = last / kSlab};
}

void attend(const AttentionCall& call) {
  constexpr auto kTile = static_cast<std::int64_t>(kKeyTile);
  const CachedHead& cache = call.cache;
  const std::size_t width = round_up16(cache.value_dim);
  const Seen seen = seen_keys(call);
  for (std::size_t r = 0; r < call.num_rows; ++r) {
    call.rows[r].stats[0] = kNoScore;
    call.rows[r].stats[1] = 0.0F;
    for (std::size_t d = 0; d < width; d += 16) store(call.rows[r].out + d, zero());
  }
  const bool is_direct = call.num_rows <= kDirectRows;
  // Bytes need no unpacking; rows of values that are not whole vectors do.
  const bool widens_keys = !is_direct && cache.key_type != CacheType::kQ8;
  const bool widens_values =
      !is_direct || (cache.value_type == CacheType::kF16 && width != cache.value_dim);
  const std::size_t key_groups = cache_scale_groups(cache.head_dim);
  const std::size_t value_groups = cache_scale_groups(cache.value_dim);
  float* const wide_values = call.scratch + kKeyTile * key_groups * kScaleGroup;
  float* const value_scales = wide_values + kKeyTile * value_groups * kScaleGroup;
  const Reader reader{
      .call = call,
      .tiles =
          tiles_of(cache, seen.sinks > call.key_begin ? call.key_begin : seen.first, seen.last),
      .width = width,
      .key_planes = key_plane_bytes(cache.key_type, cache.head_dim),
      .value_planes = kSlabTokens / 4 * value_quad_bytes(cache.value_type, cache.value_dim),
      .prefetches = is_direct,
      .wide_keys = widens_keys ? call.scratch : nullptr,
      .wide_values = widens_values ? wide_values : nullptr,
      .value_scales = value_scales,
      .queries = value_scales + value_groups * kSharedScales,
      .query_floats = packed_query_floats(cache.head_dim)};
  if (cache.key_type != CacheType::kF16) {
    for (std::size_t r = 0; r < call.num_rows; ++r) {
      if (call.rows[r].packed_q != nullptr) continue;
      pack_query(cache.key_type, call.rows[r].q, cache.head_dim,
                 reader.queries + r * reader.query_floats);
    }
  }
  std::int64_t begin = seen.tile_from(call.key_begin / kTile * kTile);
  if (begin > seen.last) return;
  Tile tile{.now = {}, .next = reader.tiles.find(begin / kTile)};
  while (begin <= seen.last) {
    const std::int64_t next = seen.tile_from(begin + kTile);
    tile.now = tile.next;
    if (next <= seen.last) {
      tile.next = reader.tiles.find(next / kTile);
    } else if (call.next_begin < call.next_end) {
      tile.next =
          tiles_of(call.next, call.next_begin, call.next_end - 1).find(call.next_begin / kTile);
    }
    prepare_tile(reader, tile);
    attend_tile(reader, tile, begin);
    begin = next;
  }
}

void merge(const float* out, const float* stats, std::size_t value_dim, float* total_out,
           float* total_stats) {
  const float new_max = stats[0] > total_stats[0] ? stats[0] : total_stats[0];
  alignas(64) float lanes[16];
  store(lanes, exp2_of_negative(broadcast(total_stats[0] - new_max)));
  const float keep = lanes[0];
  store(lanes, exp2_of_negative(broadcast(stats[0] - new_max)));
  const float take = lanes[0];
  total_stats[0] = new_max;
  total_stats[1] = total_stats[1] * keep + stats[1] * take;
  for (std::size_t d = 0; d < round_up16(value_dim); d += 16) {
    store(total_out + d, load(total_out + d) * broadcast(keep) + load(out + d) * broadcast(take));
  }
}

void finish(const float* total_out, const float* total_stats, std::size_t value_dim, float* y) {
  const F32x16 sum = broadcast(total_stats[1]);
  std::size_t d = 0;
  for (; d + 16 <= value_dim; d += 16) store(y + d, load(total_out + d) / sum);
  if (d == value_dim) return;
  alignas(64) float lanes[16];
  store(lanes, load(total_out + d) / sum);
  __builtin_memcpy(y + d, lanes, (value_dim - d) * sizeof(float));
}

}  // namespace
}  // namespace cicada::kernels
