// Scores and sums of a tile of bytes, q8, q6 or q4: exact products of integers, then one fma of
// float32 a group of 32. `offset` is what was added to an element when it was stored.
//
// Queries and weights are integers of 15 bits in two bytes, high and low: the cache alone decides
// how much is lost.
#pragma once

#include "cicada/kernels/attention/multiply-inl.h"
#include "cicada/kernels/attention/tile-inl.h"

namespace cicada::kernels {
namespace {

inline constexpr std::size_t kRowBytes = kCacheRowBytes;
inline constexpr std::size_t kGroupKeyRows = kScaleGroup / 4;     // rows of 16 keys by 4 elements
inline constexpr std::size_t kGroupValueRows = kScaleGroup / 16;  // rows of 16 elements by 4 keys

// Where the planes of `rows` rows of 64 elements lie.
template <CacheType kType>
struct Planes {
  const std::uint8_t* low;
  const std::uint8_t* high;  // of q6

  CICADA_INLINE Planes(const std::byte* at, std::size_t rows)
      : low(reinterpret_cast<const std::uint8_t*>(at)), high(low + (rows + 1) / 2 * kRowBytes) {}

  // Row r, r % 4 being kPlace.
  template <std::size_t kPlace>
  CICADA_INLINE U8x64 row(std::size_t r) const {
    if constexpr (kType == CacheType::kQ8) {
      return load_bytes(low + r * kRowBytes);
    } else {
      const U8x64 nibbles = nibble<kPlace % 2 * 4>(load_bytes(low + r / 2 * kRowBytes));
      if constexpr (kType == CacheType::kQ4) {
        return nibbles;
      } else {
        return or_two_bits<2 * kPlace, 4>(nibbles, load_bytes(high + r / 4 * kRowBytes));
      }
    }
  }
};

inline constexpr float kMostOf15Bits = 127.0F * 128.0F;

// Writes sixteen integers as high * 128 + low, and returns them.
CICADA_INLINE I32x16 store_split(F32x16 x, std::int8_t* high, std::int8_t* low) {
  const I32x16 whole = to_i32(x);
  const I32x16 upper = shift_right<7>(whole + broadcast_i32(64));
  store_i8(high, upper);
  store_i8(low, whole - shift_left<7>(upper));
  return whole;
}

// One query as integers: its scale, the sums of its groups, and the two planes; views into scratch
// of floats(head_dim), aligned to 64 bytes.
struct PackedQuery {
  float* scale;
  std::int32_t* sums;  // [scale groups]
  std::int8_t* high;   // [key rows * 4]
  std::int8_t* low;

  static constexpr std::size_t floats(std::size_t head_dim) {
    return (16 + cache_scale_groups(head_dim) + 2 * cache_key_rows(head_dim) + 15) / 16 * 16;
  }

  PackedQuery() = default;
  CICADA_INLINE PackedQuery(float* at, std::size_t head_dim)
      : scale(at),
        sums(reinterpret_cast<std::int32_t*>(at + 1)),
        high(reinterpret_cast<std::int8_t*>(at + 1 + cache_scale_groups(head_dim))),
        low(high + cache_key_rows(head_dim) * 4) {}

  CICADA_INLINE void pack(const float* q, std::size_t head_dim) const {
    alignas(64) float padded[kMostHeadDim];
    const std::size_t width = cache_key_rows(head_dim) * 4;
    __builtin_memcpy(padded, q, head_dim * sizeof(float));
    for (std::size_t d = head_dim; d < width; ++d) padded[d] = 0.0F;
    F32x16 largest = zero();
    for (std::size_t d = 0; d < width; d += 16) largest = max(abs(load(padded + d)), largest);
    const float most = reduce_max(largest);
    // A query with an infinity gets a scale that is not finite, and its scores are NaN.
    *scale = most / kMostOf15Bits;
    const F32x16 inverse = broadcast(most > 1e-30F && most < 1e30F ? kMostOf15Bits / most : 0.0F);
    for (std::size_t g = 0; g < cache_scale_groups(head_dim); ++g) {
      I32x16 sum = broadcast_i32(0);
      for (std::size_t d = g * kScaleGroup; d < (g + 1) * kScaleGroup && d < width; d += 16) {
        sum = sum + store_split(load(padded + d) * inverse, high + d, low + d);
      }
      sums[g] = reduce_add(sum);
    }
  }
};

CICADA_INLINE void prefetch(const std::byte* at, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += kRowBytes) __builtin_prefetch(at + i, 0, 2);
}

// Scores of kRows queries: scores[r][64]. The order of a score: groups ascending, one fma each of
// the exact sum times the group's scale, then times the query's scale.
template <std::size_t kRows, CacheType kType>
CICADA_INLINE void score_packed(const std::byte* const (&slabs)[kTileSlabs],
                                const std::byte* const (&scales)[kTileSlabs], std::int32_t offset,
                                std::size_t head_dim, const PackedQuery (&q)[kRowBlock],
                                float* const (&scores)[kRowBlock]) {
  const std::size_t rows = cache_key_rows(head_dim);
  for (std::size_t s = 0; s < kTileSlabs; ++s) {
    const Planes<kType> planes(slabs[s], rows);
    const auto* scale = reinterpret_cast<const std::uint16_t*>(scales[s]);
    F32x16 sum[kRows];
    for (std::size_t r = 0; r < kRows; ++r) sum[r] = zero();
    for (std::size_t g = 0; g * kGroupKeyRows < rows; ++g) {
      I32x16 high[kRows];
      I32x16 low[kRows];
      for (std::size_t r = 0; r < kRows; ++r) {
        high[r] = broadcast_i32(0);
        low[r] = broadcast_i32(-offset * q[r].sums[g]);
      }
      const std::size_t end = (g + 1) * kGroupKeyRows < rows ? (g + 1) * kGroupKeyRows : rows;
      for (std::size_t i = g * kGroupKeyRows; i < end; i += 4) {
        const U8x64 w[4] = {planes.template row<0>(i), planes.template row<1>(i + 1),
                            planes.template row<2>(i + 2), planes.template row<3>(i + 3)};
#pragma GCC unroll 4
        for (std::size_t k = 0; k < 4; ++k) {
#pragma GCC unroll 4
          for (std::size_t r = 0; r < kRows; ++r) {
            high[r] = dot4(high[r], w[k], q[r].high + 4 * (i + k));
            low[r] = dot4(low[r], w[k], q[r].low + 4 * (i + k));
          }
        }
      }
      const F32x16 group_scale = load_f16(scale + g * kSlabTokens);
      for (std::size_t r = 0; r < kRows; ++r) {
        sum[r] = fma(to_f32(shift_left<7>(high[r]) + low[r]), group_scale, sum[r]);
      }
    }
    for (std::size_t r = 0; r < kRows; ++r) {
      store(scores[r] + s * kSlabTokens, sum[r] * broadcast(*q[r].scale));
    }
  }
}

// Weights times the scales of one group of 64 keys, as integers.
struct SplitWeights {
  float scale;
  std::int32_t sum;
  alignas(64) std::int8_t high[kKeyTile];
  std::int8_t low[kKeyTile];
};

CICADA_INLINE void pack_weights(const float* weights, const std::byte* const (&scales)[kTileSlabs],
                                std::size_t group, SplitWeights& out) {
  F32x16 scaled[kTileSlabs];
  F32x16 largest = zero();
#pragma GCC unroll 4
  for (std::size_t s = 0; s < kTileSlabs; ++s) {
    const auto* scale = reinterpret_cast<const std::uint16_t*>(scales[s]) + group * kSlabTokens;
    scaled[s] = load(weights + s * kSlabTokens) * load_f16(scale);
    largest = max(abs(scaled[s]), largest);
  }
  const float most = reduce_max(largest);
  out.scale = most / kMostOf15Bits;
  const F32x16 inverse = broadcast(most > 1e-30F ? kMostOf15Bits / most : 0.0F);
  I32x16 sum = broadcast_i32(0);
#pragma GCC unroll 4
  for (std::size_t s = 0; s < kTileSlabs; ++s) {
    sum = sum +
          store_split(scaled[s] * inverse, out.high + s * kSlabTokens, out.low + s * kSlabTokens);
  }
  out.sum = reduce_add(sum);
}

// out[r] += weights[r] · values, group by group: the exact sum times the scale of the weights.
// Shapes: weights [64], out [value_dim rounded up to 16].
template <std::size_t kRows, CacheType kType>
CICADA_INLINE void add_packed(const std::byte* const (&slabs)[kTileSlabs],
                              const std::byte* const (&scales)[kTileSlabs], std::int32_t offset,
                              std::size_t value_dim, const float* const (&weights)[kRowBlock],
                              float* const (&out)[kRowBlock]) {
  const std::size_t rows = cache_value_rows(value_dim);
  const std::size_t quad_bytes = value_quad_bytes(kType, value_dim);
  const std::size_t width = round_up16(value_dim);
  const auto add_group = [&]<std::size_t kPlace>(std::size_t g) {
    SplitWeights p[kRows];
    I32x16 high[kRows][kGroupValueRows];
    I32x16 low[kRows][kGroupValueRows];
    for (std::size_t r = 0; r < kRows; ++r) {
      pack_weights(weights[r], scales, g, p[r]);
      for (std::size_t i = 0; i < kGroupValueRows; ++i) {
        high[r][i] = broadcast_i32(0);
        low[r][i] = broadcast_i32(-offset * p[r].sum);
      }
    }
    for (std::size_t s = 0; s < kTileSlabs; ++s) {
#pragma GCC unroll 4
      for (std::size_t quad = 0; quad < kSlabTokens / 4; ++quad) {
        const Planes<kType> planes(slabs[s] + quad * quad_bytes, rows);
        const U8x64 w[kGroupValueRows] = {planes.template row<kPlace>(g * kGroupValueRows),
                                          planes.template row<kPlace + 1>(g * kGroupValueRows + 1)};
        const std::size_t key = s * kSlabTokens + 4 * quad;
#pragma GCC unroll 4
        for (std::size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
          for (std::size_t i = 0; i < kGroupValueRows; ++i) {
            high[r][i] = dot4(high[r][i], w[i], p[r].high + key);
            low[r][i] = dot4(low[r][i], w[i], p[r].low + key);
          }
        }
      }
    }
    for (std::size_t r = 0; r < kRows; ++r) {
      for (std::size_t i = 0; i < kGroupValueRows; ++i) {
        const std::size_t d = g * kScaleGroup + 16 * i;
        if (d >= width) break;
        store(out[r] + d, fma(to_f32(shift_left<7>(high[r][i]) + low[r][i]), broadcast(p[r].scale),
                              load(out[r] + d)));
      }
    }
  };
  for (std::size_t g = 0; g < cache_scale_groups(value_dim); g += 2) {
    add_group.template operator()<0>(g);
    if (g + 1 < cache_scale_groups(value_dim)) add_group.template operator()<2>(g + 1);
  }
}

// The rows of a tile's keys as bytes: [slab][key_rows][64].
template <CacheType kType>
CICADA_INLINE void unpack_keys(const Tile& tile, std::size_t head_dim, std::uint8_t* out) {
  const std::size_t rows = cache_key_rows(head_dim);
  for (std::size_t s = 0; s < kTileSlabs; ++s) {
    const Planes<kType> planes(tile.keys[s], rows);
    for (std::size_t i = 0; i < rows; i += 4, out += 4 * kRowBytes) {
      store_bytes(out, planes.template row<0>(i));
      store_bytes(out + kRowBytes, planes.template row<1>(i + 1));
      store_bytes(out + 2 * kRowBytes, planes.template row<2>(i + 2));
      store_bytes(out + 3 * kRowBytes, planes.template row<3>(i + 3));
    }
  }
}

// The rows of a tile's values as bytes: [slab][quad][value_rows][64].
template <CacheType kType>
CICADA_INLINE void unpack_values(const Tile& tile, std::size_t value_dim, std::uint8_t* out) {
  const std::size_t rows = cache_value_rows(value_dim);
  const std::size_t quad_bytes = value_quad_bytes(kType, value_dim);
  for (std::size_t s = 0; s < kTileSlabs; ++s) {
    for (std::size_t quad = 0; quad < kSlabTokens / 4; ++quad) {
      const Planes<kType> planes(tile.values[s] + quad * quad_bytes, rows);
      for (std::size_t i = 0; i < rows; i += 2, out += 2 * kRowBytes) {
        if (i % 4 == 0) {
          store_bytes(out, planes.template row<0>(i));
          store_bytes(out + kRowBytes, planes.template row<1>(i + 1));
        } else {
          store_bytes(out, planes.template row<2>(i));
          store_bytes(out + kRowBytes, planes.template row<3>(i + 1));
        }
      }
    }
  }
}

}  // namespace
}  // namespace cicada::kernels
