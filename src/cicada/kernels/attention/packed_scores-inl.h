// Scores of packed keys: exact products of integers, then one fma of float32 a group of 32.
#pragma once

#include "cicada/kernels/attention/multiply-inl.h"
#include "cicada/kernels/attention/packed_planes-inl.h"

namespace cicada::kernels {
namespace {

// Bytes of a query's integers: 15 bits in two bytes, high * 128 + low, for keys of 8 bits, so that
// the cache alone decides how much is lost; 8 bits for narrower keys, whose own error is several
// times that. (With 8 bits the divergence of q6 is 4 % greater and of Gemma-3's q8 a fifth; 15 bits
// cost a prompt a fifth of its speed.)
constexpr std::size_t query_bytes(CacheType keys) { return keys == CacheType::kQ8 ? 2 : 1; }

// One query as integers with one scale. A view into scratch of packed_query_floats.
struct PackedQuery {
  float* scale;
  std::int32_t* sums;     // [scale groups]: of its integers
  std::int8_t* integers;  // [key rows][query_bytes][4]: four high bytes before their low ones

  PackedQuery() = default;
  CICADA_INLINE PackedQuery(float* at, std::size_t head_dim)
      : scale(at),
        sums(reinterpret_cast<std::int32_t*>(at + 1)),
        integers(reinterpret_cast<std::int8_t*>(at + 1 + cache_scale_groups(head_dim))) {}

  CICADA_INLINE void pack(const float* q, std::size_t head_dim, std::size_t bytes) const {
    const float whole_range = bytes == 2 ? 127.0F * 128.0F : 127.0F;
    alignas(64) float padded[kMostHeadDim];
    const std::size_t width = cache_key_rows(head_dim) * 4;
    __builtin_memcpy(padded, q, head_dim * sizeof(float));
    for (std::size_t d = head_dim; d < width; ++d) padded[d] = 0.0F;
    F32x16 largest = zero();
    for (std::size_t d = 0; d < width; d += 16) largest = max(abs(load(padded + d)), largest);
    const float most = reduce_max(largest);
    // A query with an infinity gets a scale that is not finite, and its scores are NaN.
    *scale = most / whole_range;
    const F32x16 inverse = broadcast(most > 1e-30F && most < 1e30F ? whole_range / most : 0.0F);
    for (std::size_t g = 0; g < cache_scale_groups(head_dim); ++g) {
      I32x16 sum = broadcast_i32(0);
      for (std::size_t d = g * kScaleGroup; d < (g + 1) * kScaleGroup && d < width; d += 16) {
        const I32x16 whole = to_i32(load(padded + d) * inverse);
        sum = sum + whole;
        if (bytes == 1) {
          store_i8(integers + d, whole);
          continue;
        }
        const I32x16 upper = shift_right<7>(whole + broadcast_i32(64));
        std::int8_t high[16];
        std::int8_t low[16];
        store_i8(high, upper);
        store_i8(low, whole - shift_left<7>(upper));
        for (std::size_t i = 0; i < 16; i += 4) {
          __builtin_memcpy(integers + 2 * (d + i), high + i, 4);
          __builtin_memcpy(integers + 2 * (d + i) + 4, low + i, 4);
        }
      }
      sums[g] = reduce_add(sum);
    }
  }
};

// Packed keys of one tile.
struct PackedKeys {
  const std::byte* slabs[kTileSlabs];
  const std::byte* scales[kTileSlabs];
  const std::byte* next[kTileSlabs];  // slabs to ask for; null: none
  std::int32_t offset;                // what was added to an element
  std::size_t head_dim;
};

// Scores of kRows queries: scores[r][64]. The order of a score: groups ascending, one fma each of
// the exact sum times the group's scale, then times the query's scale.
template <std::size_t kRows, CacheType kType, std::size_t kBytes>
CICADA_INLINE void score_packed(const PackedKeys& keys, const PackedQuery (&q)[kRowBlock],
                                float (*scores)[kKeyTile]) {
  // Sums that do not wait for each other: a dot takes longer than the next can begin.
  constexpr std::size_t kChains = kBytes == 2 || kRows > 1 ? 2 : 4;
  const std::size_t rows = cache_key_rows(keys.head_dim);
  const std::int8_t* x[kRows];
  for (std::size_t r = 0; r < kRows; ++r) x[r] = q[r].integers;
  const bool has_next = keys.next[0] != nullptr;
  for (std::size_t s = 0; s < kTileSlabs; ++s) {
    const Planes<kType> planes(keys.slabs[s], rows);
    if (has_next)
      prefetch_scales(keys.next[s] + key_plane_bytes(kType, keys.head_dim), keys.head_dim);
    const Planes<kType> next(keys.next[s], rows);
    F32x16 sum[kRows];
#pragma GCC unroll 4
    for (std::size_t r = 0; r < kRows; ++r) sum[r] = zero();
    for (std::size_t g = 0; g * kGroupKeyRows < rows; ++g) {
      I32x16 dot[kRows][kChains];
#pragma GCC unroll 4
      for (std::size_t r = 0; r < kRows; ++r) {
        dot[r][0] = broadcast_i32(-keys.offset * q[r].sums[g]);
        for (std::size_t c = 1; c < kChains; ++c) dot[r][c] = broadcast_i32(0);
      }
      const std::size_t end = (g + 1) * kGroupKeyRows < rows ? (g + 1) * kGroupKeyRows : rows;
      for (std::size_t i = g * kGroupKeyRows; i < end; i += 4) {
        if (has_next) next.prefetch_four(i);
        const U8x64 w[4] = {planes.template row<0>(i), planes.template row<1>(i + 1),
                            planes.template row<2>(i + 2), planes.template row<3>(i + 3)};
#pragma GCC unroll 4
        for (std::size_t k = 0; k < 4; ++k) {
#pragma GCC unroll 4
          for (std::size_t r = 0; r < kRows; ++r) {
            const std::int8_t* at = x[r] + 4 * kBytes * (i + k);
            if constexpr (kBytes == 2) {
              dot[r][0] = dot4(dot[r][0], w[k], at + 4);
              dot[r][1] = dot4(dot[r][1], w[k], at);
            } else {
              dot[r][k % kChains] = dot4(dot[r][k % kChains], w[k], at);
            }
          }
        }
      }
      const F32x16 group_scale = load_scales(keys.scales[s], g);
#pragma GCC unroll 4
      for (std::size_t r = 0; r < kRows; ++r) {
        I32x16 total = dot[r][0];
        if constexpr (kBytes == 2) {
          total = total + shift_left<7>(dot[r][1]);
        } else {
          for (std::size_t c = 1; c < kChains; ++c) total = total + dot[r][c];
        }
        sum[r] = fma(to_f32(total), group_scale, sum[r]);
      }
    }
#pragma GCC unroll 4
    for (std::size_t r = 0; r < kRows; ++r) {
      store(scores[r] + s * kSlabTokens, sum[r] * broadcast(*q[r].scale));
    }
  }
}

}  // namespace
}  // namespace cicada::kernels
