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
template <typename Float, typename Sum, typename Byte>
struct PackedQueryView {
  Float* scale;
  Sum* sums;       // [scale groups]: of its integers
  Byte* integers;  // [key rows][query_bytes][4]: four high bytes before their low ones

  PackedQueryView() = default;
  CICADA_INLINE PackedQueryView(Float* at, std::size_t head_dim)
      : scale(at),
        sums(reinterpret_cast<Sum*>(at + 1)),
        integers(reinterpret_cast<Byte*>(at + 1 + cache_scale_groups(head_dim))) {}
};
using PackedQuery = PackedQueryView<const float, const std::int32_t, const std::int8_t>;

void pack_query(CacheType keys, const float* q, std::size_t head_dim, float* out) {
  const std::size_t bytes = query_bytes(keys);
  const PackedQueryView<float, std::int32_t, std::int8_t> packed(out, head_dim);
  const float whole_range = bytes == 2 ? 127.0F * 128.0F : 127.0F;
  alignas(64) float padded[kMostHeadDim];
  const std::size_t width = cache_key_rows(head_dim) * 4;
  __builtin_memcpy(padded, q, head_dim * sizeof(float));
  for (std::size_t d = head_dim; d < width; ++d) padded[d] = 0.0F;
  F32x16 largest = zero();
  for (std::size_t d = 0; d < width; d += 16) largest = max(abs(load(padded + d)), largest);
  const float most = reduce_max(largest);
  // A query with an infinity gets a scale that is not finite, and its scores are NaN.
  *packed.scale = most / whole_range;
  const F32x16 inverse = broadcast(most > 1e-30F && most < 1e30F ? whole_range / most : 0.0F);
  for (std::size_t g = 0; g < cache_scale_groups(head_dim); ++g) {
    I32x16 sum = broadcast_i32(0);
    for (std::size_t d = g * kScaleGroup; d < (g + 1) * kScaleGroup && d < width; d += 16) {
      const I32x16 whole = to_i32(load(padded + d) * inverse);
      sum = sum + whole;
      if (bytes == 1) {
        store_i8(packed.integers + d, whole);
        continue;
      }
      const I32x16 upper = shift_right<7>(whole + broadcast_i32(64));
      std::int8_t high[16];
      std::int8_t low[16];
      store_i8(high, upper);
      store_i8(low, whole - shift_left<7>(upper));
      for (std::size_t i = 0; i < 16; i += 4) {
        __builtin_memcpy(packed.integers + 2 * (d + i), high + i, 4);
        __builtin_memcpy(packed.integers + 2 * (d + i) + 4, low + i, 4);
      }
    }
    packed.sums[g] = reduce_add(sum);
  }
}

// Packed keys of one tile.
struct PackedKeys {
  const std::byte* slabs[kTileSlabs];
  const std::byte* scales[kTileSlabs];
  const std::byte* next[kTileSlabs];  // slabs to ask for; null: none
  std::int32_t offset;                // what was added to an element
  std::size_t head_dim;
};

// Slabs that are read side by side, so that a query's bytes serve for all of them: as many as leave
// registers for their sums.
constexpr std::size_t slabs_at_once(std::size_t rows) { return rows > 2 ? 2 : kTileSlabs; }

// Adds the products of row kPlace of four, for each slab and query. `block`: of four rows.
template <std::size_t kRows, CacheType kType, std::size_t kBytes, std::size_t kPlace,
          std::size_t kSlabs>
CICADA_INLINE void add_products(const typename Planes<kType>::Four (&four)[kSlabs],
                                const std::int8_t* const (&x)[kRows], std::size_t block,
                                I32x16 (&dot)[kRows][kSlabs][kBytes]) {
#pragma GCC unroll 4
  for (std::size_t s = 0; s < kSlabs; ++s) {
    const U8x64 w = Planes<kType>::template row<kPlace>(four[s]);
#pragma GCC unroll 4
    for (std::size_t r = 0; r < kRows; ++r) {
      const std::int8_t* at = x[r] + 4 * kBytes * (4 * block + kPlace);
      if constexpr (kBytes == 2) {
        dot[r][s][0] = dot4(dot[r][s][0], w, at + 4);
        dot[r][s][1] = dot4(dot[r][s][1], w, at);
      } else {
        dot[r][s][0] = dot4(dot[r][s][0], w, at);
      }
    }
  }
}

// Scores of kRows queries: scores[r][64]. The order of a score: groups ascending, one fma each of
// the exact sum times the group's scale, then times the query's scale.
template <std::size_t kRows, CacheType kType, std::size_t kBytes>
CICADA_INLINE void score_packed(const PackedKeys& keys, const PackedQuery (&q)[kRowBlock],
                                float (*scores)[kKeyTile]) {
  constexpr std::size_t kSlabs = slabs_at_once(kRows);
  constexpr std::size_t kGroupBlocks = kGroupKeyRows / 4;
  const std::size_t rows = cache_key_rows(keys.head_dim);
  const std::size_t blocks = rows / 4;
  const std::int8_t* x[kRows];
  for (std::size_t r = 0; r < kRows; ++r) x[r] = q[r].integers;
  const bool has_next = keys.next[0] != nullptr;
  for (std::size_t first = 0; first < kTileSlabs; first += kSlabs) {
    if (has_next) {
      for (std::size_t s = first; s < first + kSlabs; ++s) {
        prefetch_scales(keys.next[s] + key_plane_bytes(kType, keys.head_dim), keys.head_dim);
      }
    }
    for (std::size_t g = 0; g * kGroupBlocks < blocks; ++g) {
      I32x16 dot[kRows][kSlabs][kBytes];
#pragma GCC unroll 4
      for (std::size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
        for (std::size_t s = 0; s < kSlabs; ++s) {
          dot[r][s][0] = broadcast_i32(-keys.offset * q[r].sums[g]);
          if constexpr (kBytes == 2) dot[r][s][1] = broadcast_i32(0);
        }
      }
      const std::size_t end = (g + 1) * kGroupBlocks < blocks ? (g + 1) * kGroupBlocks : blocks;
      for (std::size_t block = g * kGroupBlocks; block < end; ++block) {
        typename Planes<kType>::Four four[kSlabs];
#pragma GCC unroll 4
        for (std::size_t s = 0; s < kSlabs; ++s) {
          if (has_next) Planes<kType>(keys.next[first + s], rows).prefetch_four(block);
          four[s] = Planes<kType>(keys.slabs[first + s], rows).four(block);
        }
        add_products<kRows, kType, kBytes, 0>(four, x, block, dot);
        add_products<kRows, kType, kBytes, 1>(four, x, block, dot);
        add_products<kRows, kType, kBytes, 2>(four, x, block, dot);
        add_products<kRows, kType, kBytes, 3>(four, x, block, dot);
      }
#pragma GCC unroll 4
      for (std::size_t s = 0; s < kSlabs; ++s) {
        const F32x16 group_scale = load_scales(keys.scales[first + s], g);
#pragma GCC unroll 4
        for (std::size_t r = 0; r < kRows; ++r) {
          I32x16 total = dot[r][s][0];
          if constexpr (kBytes == 2) total = total + shift_left<7>(dot[r][s][1]);
          float* at = scores[r] + (first + s) * kSlabTokens;
          store(at, fma(to_f32(total), group_scale, g == 0 ? zero() : load(at)));
        }
      }
    }
  }
#pragma GCC unroll 4
  for (std::size_t r = 0; r < kRows; ++r) {
    const F32x16 scale = broadcast(*q[r].scale);
    for (std::size_t j = 0; j < kKeyTile; j += 16) {
      store(scores[r] + j, load(scores[r] + j) * scale);
    }
  }
}

}  // namespace
}  // namespace cicada::kernels
