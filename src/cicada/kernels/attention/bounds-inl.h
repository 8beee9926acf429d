// Bounds of the keys of a tile, and the scores that no key within them exceeds (after Quest,
// arXiv:2406.10774).
#pragma once

#include "cicada/kernels/attention/packed_planes-inl.h"
#include "cicada/kernels/attention/store-inl.h"
#include "cicada/kernels/attention/weigh-inl.h"

namespace cicada::kernels {
namespace {

// One key of a slab as float: [head_dim], then zeros up to a multiple of 16.
CICADA_INLINE void read_key(CacheType type, const std::byte* slab, const std::uint8_t* unpacked,
                            std::size_t head_dim, std::size_t slot, float* out) {
  const std::size_t width = round_up16(head_dim);
  for (std::size_t d = head_dim; d < width; ++d) out[d] = 0.0F;
  if (type == CacheType::kF16) {
    const auto* keys = reinterpret_cast<const std::uint16_t*>(slab);
    alignas(64) std::uint16_t lanes[kMostHeadDim];
    for (std::size_t d = 0; d < head_dim; ++d) lanes[d] = keys[d * kSlabTokens + slot];
    for (std::size_t d = head_dim; d < width; ++d) lanes[d] = 0;
    for (std::size_t d = 0; d < width; d += 16) store(out + d, load_f16(lanes + d));
    return;
  }
  const std::byte* scales = slab + key_plane_bytes(type, head_dim);
  for (std::size_t g = 0; g < cache_scale_groups(head_dim); ++g) {
    alignas(64) float lanes[16];
    store(lanes, load_scales(scales, g));
    const std::size_t begin = g * kScaleGroup;
    const std::size_t end = begin + kScaleGroup < head_dim ? begin + kScaleGroup : head_dim;
    for (std::size_t d = begin; d < end; ++d) {
      const std::int32_t stored = unpacked[d / 4 * kRowBytes + slot * 4 + d % 4];
      out[d] = lanes[slot] * static_cast<float>(stored - cache_offset(type));
    }
  }
}

// Where a tile's bounds lie: with its last slab.
CICADA_INLINE std::size_t bounds_page(const CachedHead& cache, std::size_t tile) {
  return (tile * kTileSlabs + kTileSlabs - 1) / cache.slabs_in_page;
}

void bound_keys(const CachedHead& cache, std::size_t tile, std::byte* page) {
  const std::size_t width = round_up16(cache.head_dim);
  const std::size_t slab_bytes = cache.slab_bytes();
  Tile slabs{};
  for (std::size_t s = 0; s < kTileSlabs; ++s) {
    slabs.now.keys[s] = cache.slab(tile * kTileSlabs + s, slab_bytes);
  }
  alignas(64) std::uint8_t unpacked[kKeyTile * (kMostHeadDim + 16)];
  if (cache.key_type == CacheType::kQ8)
    unpack_keys<CacheType::kQ8>(slabs, cache.head_dim, unpacked);
  if (cache.key_type == CacheType::kQ6)
    unpack_keys<CacheType::kQ6>(slabs, cache.head_dim, unpacked);
  if (cache.key_type == CacheType::kQ4)
    unpack_keys<CacheType::kQ4>(slabs, cache.head_dim, unpacked);
  alignas(64) float key[kMostHeadDim];
  alignas(64) float high[kMostHeadDim];
  alignas(64) float low[kMostHeadDim];
  for (std::size_t i = 0; i < kKeyTile; ++i) {
    const std::size_t s = i / kSlabTokens;
    read_key(cache.key_type, slabs.now.keys[s],
             unpacked + s * cache_key_rows(cache.head_dim) * kRowBytes, cache.head_dim,
             i % kSlabTokens, key);
    for (std::size_t d = 0; d < width; d += 16) {
      store(high + d, i == 0 ? load(key + d) : max(load(key + d), load(high + d)));
      store(low + d, i == 0 ? load(key + d) : min(load(key + d), load(low + d)));
    }
  }
  auto* out = reinterpret_cast<std::uint16_t*>(page + cache.bounds_offset);
  for (std::size_t d = 0; d < width; d += 16) {
    store_f16(out + d, clamp_to_f16(load(high + d)));
    store_f16(out + width + d, clamp_to_f16(load(low + d)));
  }
}

// The most that the biases of a row add to a score in a tile.
CICADA_INLINE float most_of_biases(const TileBoundsCall& call, std::size_t tile) {
  const AttentionRow& row = *call.row;
  alignas(64) float scores[1][kKeyTile] = {};
  if (call.key_bias.tile_angles != nullptr) add_key_bias<1>(call.key_bias, &row, tile, scores);
  F32x16 most = broadcast(kNoScore);
  for (std::size_t j = 0; j < kKeyTile; j += 16) {
    F32x16 s = load(scores[0] + j);
    if (row.bias.reversed != nullptr) {
      s = s + bias_lanes(row.bias, row.position, static_cast<std::int64_t>(tile * kKeyTile + j));
    }
    most = max(s, most);
  }
  return reduce_max(most);
}

// For each tile: one fma chain over the head in sixteen lanes, of the query's positive elements
// times the largest and its negative ones times the least, folded in one tree.
void score_bounds(const TileBoundsCall& call) {
  const CachedHead& cache = call.cache;
  const std::size_t width = round_up16(cache.head_dim);
  alignas(64) float query[kMostHeadDim];
  __builtin_memcpy(query, call.row->q, cache.head_dim * sizeof(float));
  for (std::size_t d = cache.head_dim; d < width; ++d) query[d] = 0.0F;
  const bool has_bias = call.key_bias.tile_angles != nullptr || call.row->bias.reversed != nullptr;
  for (std::size_t tile = call.tile_begin; tile < call.tile_end; ++tile) {
    const auto* high = reinterpret_cast<const std::uint16_t*>(
        cache.pages[bounds_page(cache, tile)] + cache.bounds_offset);
    const std::uint16_t* low = high + width;
    F32x16 sum = zero();
    for (std::size_t d = 0; d < width; d += 16) {
      const F32x16 q = load(query + d);
      sum = fma(max(q, zero()), load_f16(high + d), sum);
      sum = fma(min(q, zero()), load_f16(low + d), sum);
    }
    call.scores[tile] = reduce_add(sum) + (has_bias ? most_of_biases(call, tile) : 0.0F);
  }
}

}  // namespace
}  // namespace cicada::kernels
