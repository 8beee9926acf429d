// Weighted sums of packed values: weights times the values' scales as integers, exact products over
// a tile, then one fma of float32 a group of 32.
#pragma once

#include "cicada/kernels/attention/multiply-inl.h"
#include "cicada/kernels/attention/packed_planes-inl.h"
#include "cicada/kernels/attention/weigh-inl.h"

namespace cicada::kernels {
namespace {

// Bytes of a weight's integer: 15 bits in two for values of 8 bits, 8 bits in one for narrower
// values. (With 8 bits the divergence of q6 is 2 to 13 % greater, since small weights beside a
// large one round to nothing; with 15, decoding after 7,000 tokens takes a tenth more time.)
constexpr std::size_t weight_bytes(CacheType values) { return values == CacheType::kQ8 ? 2 : 1; }
constexpr float largest_weight(std::size_t bytes) { return bytes == 2 ? 127.0F * 128.0F : 255.0F; }

// Packed values of one tile, and what its rows share.
struct PackedValues {
  const std::byte* slabs[kTileSlabs];
  const std::byte* scales[kTileSlabs];
  const std::byte* next[kTileSlabs];  // slabs to ask for; null: none
  const float* shared_scales;         // [groups][kSharedScales]: of all 64 keys
  std::size_t value_dim;
};

// What the scales of a group of 64 keys become: each over the largest, times the largest integer;
// and after them that largest, over it.
inline constexpr std::size_t kSharedScales = kKeyTile + 16;

CICADA_INLINE void share_group(const F32x16 (&scales)[kTileSlabs], float largest_integer,
                               float* out) {
  F32x16 largest = zero();
#pragma GCC unroll 4
  for (std::size_t s = 0; s < kTileSlabs; ++s) largest = max(scales[s], largest);
  const float most = reduce_max(largest);
  const F32x16 inverse = broadcast(most > 0.0F ? largest_integer / most : 0.0F);
#pragma GCC unroll 4
  for (std::size_t s = 0; s < kTileSlabs; ++s) store(out + s * kSlabTokens, scales[s] * inverse);
  out[kKeyTile] = most / largest_integer;
}

CICADA_INLINE void share_scales(const std::byte* const (&scales)[kTileSlabs], std::size_t groups,
                                float largest_integer, float* out) {
  for (std::size_t g = 0; g < groups; ++g, out += kSharedScales) {
    F32x16 scale[kTileSlabs];
#pragma GCC unroll 4
    for (std::size_t s = 0; s < kTileSlabs; ++s) scale[s] = load_scales(scales[s], g);
    share_group(scale, largest_integer, out);
  }
}

// The same for a row that does not see all keys of the tile: those it does not see have no say.
CICADA_INLINE void own_scales(const PackedValues& values, const AttentionRow& row,
                              std::int64_t tile_begin, std::size_t group, float largest_integer,
                              float* out) {
  F32x16 scale[kTileSlabs];
  for (std::size_t s = 0; s < kTileSlabs; ++s) {
    const std::int64_t first = tile_begin + static_cast<std::int64_t>(s * kSlabTokens);
    scale[s] = select_seen(row, load_scales(values.scales[s], group), zero(), first);
  }
  share_group(scale, largest_integer, out);
}

// Weights of 64 keys as integers: in one byte, or as high * 128 + low.
struct SplitWeights {
  alignas(64) std::uint8_t high[kKeyTile];
  std::uint8_t low[kKeyTile];
};

// `inverse`: one over the largest weight.
template <std::size_t kBytes>
CICADA_INLINE void split_weights(const float* weights, F32x16 inverse, const float* scales,
                                 SplitWeights& out) {
#pragma GCC unroll 4
  for (std::size_t j = 0; j < kKeyTile; j += 16) {
    const I32x16 whole = to_i32(load(weights + j) * inverse * load(scales + j));
    if constexpr (kBytes == 1) {
      store_low_bytes(out.high + j, whole);
    } else {
      store_low_bytes(out.high + j, shift_right<7>(whole));
      store_low_bytes(out.low + j, and_bits(whole, 127));
    }
  }
}

// One group of 32 elements, the g-th, whose g % 2 is kOdd.
template <std::size_t kRows, CacheType kType, bool kSigned, std::size_t kBytes, bool kOdd>
CICADA_INLINE void add_group(const PackedValues& values, std::size_t g, std::size_t quad_bytes,
                             const WeighedRows& weighed) {
  constexpr char kOffset = static_cast<char>(cache_offset(kType));
  const std::size_t rows = cache_value_rows(values.value_dim);
  const std::size_t width = round_up16(values.value_dim);
  SplitWeights p[kRows];
  float scale[kRows];
  I32x16 sum[kRows][kBytes][kGroupValueRows];  // of the products of each byte
#pragma GCC unroll 4
  for (std::size_t r = 0; r < kRows; ++r) {
    const float* scales = values.shared_scales + g * kSharedScales;
    alignas(64) float own[kSharedScales];
    if (!weighed.sees_all[r]) {
      own_scales(values, weighed.rows[r], weighed.tile_begin, g, largest_weight(kBytes), own);
      scales = own;
    }
    const float most = weighed.largest[r];
    split_weights<kBytes>(weighed.weights[r], broadcast(most > 0.0F ? 1.0F / most : 0.0F), scales,
                          p[r]);
    scale[r] = scales[kKeyTile] * most;
#pragma GCC unroll 2
    for (std::size_t i = 0; i < kGroupValueRows; ++i) {
      for (std::size_t b = 0; b < kBytes; ++b) sum[r][b][i] = broadcast_i32(0);
    }
  }
  const bool has_next = values.next[0] != nullptr;
  for (std::size_t s = 0; s < kTileSlabs; ++s) {
    if (has_next && g == 0) {
      prefetch_scales(values.next[s] + kSlabTokens / 4 * quad_bytes, values.value_dim);
    }
#pragma GCC unroll 4
    for (std::size_t quad = 0; quad < kSlabTokens / 4; ++quad) {
      const Planes<kType> planes(values.slabs[s] + quad * quad_bytes, rows);
      if (has_next) {
        Planes<kType>(values.next[s] + quad * quad_bytes, rows).template prefetch_two<kOdd>(g);
      }
      U8x64 w[kGroupValueRows];
      planes.template two<kOdd>(g, w);
      if constexpr (!kSigned) {
        w[0] = subtract_bytes(w[0], kOffset);
        w[1] = subtract_bytes(w[1], kOffset);
      }
      const std::size_t key = s * kSlabTokens + 4 * quad;
#pragma GCC unroll 4
      for (std::size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (std::size_t i = 0; i < kGroupValueRows; ++i) {
          sum[r][0][i] = dot4_signed(sum[r][0][i], w[i], p[r].high + key);
          if constexpr (kBytes == 2) {
            sum[r][1][i] = dot4_signed(sum[r][1][i], w[i], p[r].low + key);
          }
        }
      }
    }
  }
#pragma GCC unroll 4
  for (std::size_t r = 0; r < kRows; ++r) {
    float* out = weighed.rows[r].out;
#pragma GCC unroll 2
    for (std::size_t i = 0; i < kGroupValueRows; ++i) {
      const std::size_t d = g * kScaleGroup + 16 * i;
      if (d >= width) break;
      I32x16 total = sum[r][0][i];
      if constexpr (kBytes == 2) total = shift_left<7>(total) + sum[r][1][i];
      store(out + d, fma(to_f32(total), broadcast(scale[r]), load(out + d)));
    }
  }
}

// Adds to the rows' outputs their weights times the values. `kSigned`: the values are signed bytes
// already, of unpack_values().
template <std::size_t kRows, CacheType kType, bool kSigned, std::size_t kBytes>
CICADA_INLINE void add_packed(const PackedValues& values, const WeighedRows& weighed) {
  const std::size_t quad_bytes = value_quad_bytes(kType, values.value_dim);
  const std::size_t groups = cache_scale_groups(values.value_dim);
  for (std::size_t g = 0; g < groups; g += 2) {
    add_group<kRows, kType, kSigned, kBytes, false>(values, g, quad_bytes, weighed);
    if (g + 1 == groups) break;
    add_group<kRows, kType, kSigned, kBytes, true>(values, g + 1, quad_bytes, weighed);
  }
}

}  // namespace
}  // namespace cicada::kernels
