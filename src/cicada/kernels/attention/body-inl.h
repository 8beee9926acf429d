// Attention of every level; see attention.h for the contract.
#pragma once

#include "cicada/kernels/attention/attention.h"
#include "cicada/kernels/attention/float_tile-inl.h"
#include "cicada/kernels/attention/packed_tile-inl.h"
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
  std::size_t width;       // of outputs
  std::size_t key_planes;  // bytes of a slab's before its scales
  std::size_t value_planes;
  bool keys_direct;
  bool values_direct;
  float* wide_keys;  // a tile's as float, or as bytes
  float* wide_values;
  float* queries;  // packed ones, query_floats each
  std::size_t query_floats;

  CICADA_INLINE PackedQuery query(std::size_t row) const {
    return PackedQuery(queries + row * query_floats, call.cache.head_dim);
  }
};

CICADA_INLINE void scales_of(const std::byte* const (&slabs)[kTileSlabs], std::size_t planes,
                             const std::byte* (&scales)[kTileSlabs]) {
  for (std::size_t s = 0; s < kTileSlabs; ++s) scales[s] = slabs[s] + planes;
}

// Where the slabs of a tile lie that was unpacked into bytes.
CICADA_INLINE void unpacked_slabs(const float* wide, std::size_t slab_bytes,
                                  const std::byte* (&slabs)[kTileSlabs]) {
  for (std::size_t s = 0; s < kTileSlabs; ++s) {
    slabs[s] = reinterpret_cast<const std::byte*>(wide) + s * slab_bytes;
  }
}

template <std::size_t kRows>
CICADA_INLINE void score_rows(const Reader& reader, const Tile& tile, std::size_t first_row,
                              float* const (&scores)[kRowBlock]) {
  const CachedHead& cache = reader.call.cache;
  if (cache.key_type == CacheType::kF16) {
    const float* q[kRowBlock];
    for (std::size_t r = 0; r < kRows; ++r) {
      q[r] = reader.call.rows[first_row + r].q;
      for (std::size_t i = 0; i < kTileVectors; ++i) store(scores[r] + 16 * i, zero());
    }
    if (reader.keys_direct) {
      multiply_add<kRows, kTileVectors>(q, cache.head_dim, CachedKeys{tile}, 0, scores);
    } else {
      multiply_add<kRows, kTileVectors>(q, cache.head_dim, FloatRows{reader.wide_keys, kKeyTile}, 0,
                                        scores);
    }
    return;
  }
  PackedQuery q[kRowBlock];
  for (std::size_t r = 0; r < kRows; ++r) q[r] = reader.query(first_row + r);
  const std::byte* scales[kTileSlabs];
  scales_of(tile.keys, reader.key_planes, scales);
  const std::int32_t offset = cache_offset(cache.key_type);
  if (!reader.keys_direct) {
    const std::byte* slabs[kTileSlabs];
    unpacked_slabs(reader.wide_keys, cache_key_rows(cache.head_dim) * kRowBytes, slabs);
    score_packed<kRows, CacheType::kQ8>(slabs, scales, offset, cache.head_dim, q, scores);
    return;
  }
  for (std::size_t s = 0; s < kTileSlabs; ++s) {
    prefetch(tile.next_keys[s], reader.tiles.key_bytes);
  }
  switch (cache.key_type) {
    case CacheType::kQ8:
      return score_packed<kRows, CacheType::kQ8>(tile.keys, scales, offset, cache.head_dim, q,
                                                 scores);
    case CacheType::kQ6:
      return score_packed<kRows, CacheType::kQ6>(tile.keys, scales, offset, cache.head_dim, q,
                                                 scores);
    case CacheType::kQ4:
      return score_packed<kRows, CacheType::kQ4>(tile.keys, scales, offset, cache.head_dim, q,
                                                 scores);
    case CacheType::kF16:
      break;
  }
}

template <std::size_t kRows>
CICADA_INLINE void add_values(const Reader& reader, const Tile& tile,
                              const float* const (&weights)[kRowBlock],
                              float* const (&out)[kRowBlock]) {
  const CachedHead& cache = reader.call.cache;
  if (cache.value_type == CacheType::kF16) {
    if (reader.values_direct) {
      multiply_add_wide<kRows>(weights, kKeyTile, CachedValues{tile, cache.value_dim}, reader.width,
                               out);
    } else {
      multiply_add_wide<kRows>(weights, kKeyTile, FloatRows{reader.wide_values, reader.width},
                               reader.width, out);
    }
    return;
  }
  const std::byte* scales[kTileSlabs];
  scales_of(tile.values, reader.value_planes, scales);
  const std::int32_t offset = cache_offset(cache.value_type);
  if (!reader.values_direct) {
    const std::byte* slabs[kTileSlabs];
    unpacked_slabs(reader.wide_values,
                   kSlabTokens / 4 * cache_value_rows(cache.value_dim) * kRowBytes, slabs);
    add_packed<kRows, CacheType::kQ8>(slabs, scales, offset, cache.value_dim, weights, out);
    return;
  }
  for (std::size_t s = 0; s < kTileSlabs; ++s) {
    prefetch(tile.next_values[s], reader.tiles.slab_bytes - reader.tiles.key_bytes);
  }
  switch (cache.value_type) {
    case CacheType::kQ8:
      return add_packed<kRows, CacheType::kQ8>(tile.values, scales, offset, cache.value_dim,
                                               weights, out);
    case CacheType::kQ6:
      return add_packed<kRows, CacheType::kQ6>(tile.values, scales, offset, cache.value_dim,
                                               weights, out);
    case CacheType::kQ4:
      return add_packed<kRows, CacheType::kQ4>(tile.values, scales, offset, cache.value_dim,
                                               weights, out);
    case CacheType::kF16:
      break;
  }
}

// Makes of a tile what many rows share: floats, or bytes.
void widen_tile(const Reader& reader, const Tile& tile) {
  const CachedHead& cache = reader.call.cache;
  auto* key_bytes = reinterpret_cast<std::uint8_t*>(reader.wide_keys);
  auto* value_bytes = reinterpret_cast<std::uint8_t*>(reader.wide_values);
  if (!reader.keys_direct) {
    if (cache.key_type == CacheType::kF16) widen_keys(tile, cache.head_dim, reader.wide_keys);
    if (cache.key_type == CacheType::kQ8)
      unpack_keys<CacheType::kQ8>(tile, cache.head_dim, key_bytes);
    if (cache.key_type == CacheType::kQ6)
      unpack_keys<CacheType::kQ6>(tile, cache.head_dim, key_bytes);
    if (cache.key_type == CacheType::kQ4)
      unpack_keys<CacheType::kQ4>(tile, cache.head_dim, key_bytes);
  }
  if (!reader.values_direct) {
    if (cache.value_type == CacheType::kF16)
      widen_values(tile, cache.value_dim, reader.wide_values);
    if (cache.value_type == CacheType::kQ8)
      unpack_values<CacheType::kQ8>(tile, cache.value_dim, value_bytes);
    if (cache.value_type == CacheType::kQ6)
      unpack_values<CacheType::kQ6>(tile, cache.value_dim, value_bytes);
    if (cache.value_type == CacheType::kQ4)
      unpack_values<CacheType::kQ4>(tile, cache.value_dim, value_bytes);
  }
}

template <std::size_t kRows>
void attend_rows(const Reader& reader, const Tile& tile, std::int64_t tile_begin,
                 std::size_t first_row) {
  const AttentionRow* rows = reader.call.rows + first_row;
  alignas(64) float scores[kRowBlock][kKeyTile];
  const float* weights[kRowBlock];
  float* score_rows_of[kRowBlock];
  float* out[kRowBlock];
  for (std::size_t r = 0; r < kRows; ++r) {
    weights[r] = scores[r];
    score_rows_of[r] = scores[r];
    out[r] = rows[r].out;
  }
  score_rows<kRows>(reader, tile, first_row, score_rows_of);
  if (reader.call.key_bias.tile_angles != nullptr) {
    const auto index = static_cast<std::size_t>(tile_begin) / kKeyTile;
    for (std::size_t r = 0; r < kRows; ++r) {
      add_key_bias(reader.call.key_bias, rows[r].key_bias, index, scores[r]);
    }
  }
  for (std::size_t r = 0; r < kRows; ++r) weigh(rows[r], tile_begin, reader.width, scores[r]);
  add_values<kRows>(reader, tile, weights, out);
}

CICADA_INLINE bool sees(const AttentionRow& row, std::int64_t tile_begin) {
  if (row.position < tile_begin) return false;
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

// Which keys of a call's range any of its rows sees: [first, last], and those before `sinks`.
struct Seen {
  std::int64_t first;
  std::int64_t last;
  std::int64_t sinks;

  // The tile at or after `begin` that a row sees.
  CICADA_INLINE std::int64_t tile_from(std::int64_t begin) const {
    const std::int64_t first_tile =
        first / static_cast<std::int64_t>(kKeyTile) * static_cast<std::int64_t>(kKeyTile);
    return begin >= sinks && begin < first_tile ? first_tile : begin;
  }
};

CICADA_INLINE Seen seen_keys(const AttentionCall& call) {
  Seen seen{.first = call.key_end, .last = call.key_begin - 1, .sinks = 0};
  for (std::size_t r = 0; r < call.num_rows; ++r) {
    const AttentionRow& row = call.rows[r];
    if (row.first_key < seen.first) seen.first = row.first_key;
    if (row.position > seen.last) seen.last = row.position;
    if (row.sinks > seen.sinks) seen.sinks = row.sinks;
  }
  if (seen.first < call.key_begin) seen.first = call.key_begin;
  if (seen.last >= call.key_end) seen.last = call.key_end - 1;
  return seen;
}

void attend(const AttentionCall& call) {
  constexpr auto kTile = static_cast<std::int64_t>(kKeyTile);
  constexpr auto kSlab = static_cast<std::int64_t>(kSlabTokens);
  const CachedHead& cache = call.cache;
  const std::size_t width = round_up16(cache.value_dim);
  const Seen seen = seen_keys(call);
  for (std::size_t r = 0; r < call.num_rows; ++r) {
    call.rows[r].stats[0] = kNoScore;
    call.rows[r].stats[1] = 0.0F;
    for (std::size_t d = 0; d < width; d += 16) store(call.rows[r].out + d, zero());
  }
  const bool is_direct = call.num_rows <= kDirectRows;
  const std::int64_t first_slab =
      (seen.sinks > call.key_begin ? call.key_begin : seen.first) / kSlab;
  const Reader reader{
      .call = call,
      .tiles = {.cache = cache,
                .key_bytes = cache.key_bytes(),
                .slab_bytes = cache.slab_bytes(),
                .first_slab = first_slab,
                .last_slab = seen.last / kSlab},
      .width = width,
      .key_planes =
          cache.key_type == CacheType::kF16 ? 0 : key_plane_bytes(cache.key_type, cache.head_dim),
      .value_planes = cache.value_type == CacheType::kF16
                          ? 0
                          : kSlabTokens / 4 * value_quad_bytes(cache.value_type, cache.value_dim),
      .keys_direct = is_direct || cache.key_type == CacheType::kQ8,
      .values_direct = (is_direct || cache.value_type == CacheType::kQ8) &&
                       (cache.value_type != CacheType::kF16 || width == cache.value_dim),
      .wide_keys = call.scratch,
      .wide_values = call.scratch + kKeyTile * cache_scale_groups(cache.head_dim) * kScaleGroup,
      .queries = call.scratch +
                 kKeyTile * kScaleGroup *
                     (cache_scale_groups(cache.head_dim) + cache_scale_groups(cache.value_dim)),
      .query_floats = PackedQuery::floats(cache.head_dim)};
  if (cache.key_type != CacheType::kF16) {
    for (std::size_t r = 0; r < call.num_rows; ++r) {
      reader.query(r).pack(call.rows[r].q, cache.head_dim);
    }
  }
  std::int64_t begin = seen.tile_from(call.key_begin / kTile * kTile);
  while (begin <= seen.last) {
    const std::int64_t next = seen.tile_from(begin + kTile);
    const Tile tile =
        reader.tiles.tile(begin / kTile, next <= seen.last ? next / kTile : begin / kTile);
    if (!reader.keys_direct || !reader.values_direct) widen_tile(reader, tile);
    attend_tile(reader, tile, begin);
    begin = next;
  }
}

void merge(const float* out, const float* stats, std::size_t value_dim, float* total_out,
           float* total_stats) {
  const float new_max = stats[0] > total_stats[0] ? stats[0] : total_stats[0];
  alignas(64) float lanes[16];
  store(lanes, exp(broadcast(total_stats[0] - new_max)));
  const float keep = lanes[0];
  store(lanes, exp(broadcast(stats[0] - new_max)));
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
