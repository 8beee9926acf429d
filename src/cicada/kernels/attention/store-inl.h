// Writing keys and values into the cache; see cache.h for the layout.
#pragma once

#include "cicada/kernels/attention/attention.h"
#include "cicada/kernels/attention/tile-inl.h"
#include "cicada/kernels/simd-inl.h"

namespace cicada::kernels {
namespace {

// What the cache can hold of any number: never an infinity or NaN, which a page's next user would
// read under weights of 0.
CICADA_INLINE F32x16 clamp_to_f16(F32x16 v) {
  const F32x16 limit = broadcast(65504.0F);
  return max(min(v, limit), zero() - limit);
}

// Elements [0, dim) of x, clamped, then zeros up to `width` (a multiple of 16).
CICADA_INLINE void clamp_row(const float* x, std::size_t dim, std::size_t width, float* out) {
  __builtin_memcpy(out, x, dim * sizeof(float));
  for (std::size_t d = dim; d < width; ++d) out[d] = 0.0F;
  for (std::size_t d = 0; d < width; d += 16) store(out + d, clamp_to_f16(load(out + d)));
}

CICADA_INLINE void to_f16(const float* x, std::size_t dim, std::size_t width, std::uint16_t* out) {
  alignas(64) float row[kMostHeadDim];
  clamp_row(x, dim, width, row);
  for (std::size_t d = 0; d < width; d += 16) store_f16(out + d, load(row + d));
}

// Stored elements of a head, one byte each, and the scales of its groups. An element is nearest to
// x / scale + offset.
struct StoredHead {
  std::uint8_t elements[kMostHeadDim];
  std::uint16_t scales[kMostHeadDim / kScaleGroup];
};

// Whole steps of x, in [-half, half - 1].
CICADA_INLINE F32x16 to_steps(F32x16 x, F32x16 inverse, float half) {
  return round(max(min(x * inverse, broadcast(half - 1.0F)), broadcast(-half)));
}

// The element of a group furthest from zero.
CICADA_INLINE float furthest_of(const float* row, std::size_t count) {
  F32x16 high = load(row);
  F32x16 low = zero() - high;
  for (std::size_t d = 16; d < count; d += 16) {
    high = max(load(row + d), high);
    low = max(zero() - load(row + d), low);
  }
  const float largest = reduce_max(high);
  const float least = -reduce_max(low);
  return largest >= -least ? largest : least;
}

// The scale of a group that leaves the least squared error, of some between the one that just holds
// the furthest element (`widest`) and one that cuts a quarter of it off: for steps n of each, the
// best scale is x · n / n · n, and it explains (x · n)² / n · n of x · x.
CICADA_INLINE float best_scale(const float* row, std::size_t count, float widest, float half) {
  constexpr float kSmallest = 1e-7F;  // of a float16, nearly: nothing is left below it
  if (!(widest > kSmallest || widest < -kSmallest)) return 0.0F;
  constexpr int kTrials = 7;
  constexpr float kTrialStep = 0.04F;
  float best = widest;
  float most_explained = -1.0F;
  for (int i = 0; i < kTrials; ++i) {
    const float trial = widest * (1.0F - kTrialStep * static_cast<float>(i));
    const F32x16 inverse = broadcast(1.0F / trial);
    F32x16 products = zero();
    F32x16 squares = zero();
    for (std::size_t d = 0; d < count; d += 16) {
      const F32x16 x = load(row + d);
      const F32x16 n = to_steps(x, inverse, half);
      products = fma(x, n, products);
      squares = fma(n, n, squares);
    }
    const float product = reduce_add(products);
    const float square = reduce_add(squares);
    const float explained = product / square * product;
    if (explained > most_explained) {
      most_explained = explained;
      best = product / square;
    }
  }
  return best;
}

// `has_signed_scales`: the furthest element lands on the end of the range that has one step more,
// whatever its sign, and the scale may be negative for it; else scales are positive.
CICADA_INLINE void quantize_head(const float* x, std::size_t dim, std::size_t width,
                                 std::int32_t offset, bool has_signed_scales, StoredHead& out) {
  alignas(64) float row[kMostHeadDim];
  clamp_row(x, dim, width, row);
  const auto half = static_cast<float>(offset);
  for (std::size_t begin = 0; begin < width; begin += kScaleGroup) {
    const std::size_t end = begin + kScaleGroup < width ? begin + kScaleGroup : width;
    const float furthest = furthest_of(row + begin, end - begin);
    const float landing = has_signed_scales || furthest < 0.0F ? -half : half - 1.0F;
    std::uint16_t lanes[16];
    store_f16(lanes, broadcast(best_scale(row + begin, end - begin, furthest / landing, half)));
    out.scales[begin / kScaleGroup] = lanes[0];
    alignas(64) float widened[16];
    store(widened, load_f16(lanes));
    const float scale = widened[0];
    const F32x16 inverse = broadcast(scale != 0.0F ? 1.0F / scale : 0.0F);
    for (std::size_t d = begin; d < end; d += 16) {
      const I32x16 steps = to_i32(to_steps(load(row + d), inverse, half));
      store_low_bytes(out.elements + d, steps + broadcast_i32(offset));
    }
  }
}

// Writes one position's rows, of `in_row` elements each, into planes: element i of a row is byte
// `stride` * i.
CICADA_INLINE void store_planes(CacheType type, const std::uint8_t* elements, std::size_t rows,
                                std::size_t in_row, std::size_t stride, std::uint8_t* out) {
  const auto element = [&](std::size_t row, std::size_t i) -> unsigned {
    return row < rows ? elements[row * in_row + i] : 0U;
  };
  if (type == CacheType::kQ8) {
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t i = 0; i < in_row; ++i) {
        out[row * kCacheRowBytes + i * stride] = elements[row * in_row + i];
      }
    }
    return;
  }
  for (std::size_t row = 0; row < rows; row += 2) {
    for (std::size_t i = 0; i < in_row; ++i) {
      out[row / 2 * kCacheRowBytes + i * stride] =
          static_cast<std::uint8_t>((element(row, i) & 15U) | (element(row + 1, i) & 15U) << 4U);
    }
  }
  if (type == CacheType::kQ4) return;
  out += (rows + 1) / 2 * kCacheRowBytes;
  for (std::size_t row = 0; row < rows; row += 4) {
    for (std::size_t i = 0; i < in_row; ++i) {
      unsigned bits = 0;
      for (std::size_t k = 0; k < 4; ++k) bits |= (element(row + k, i) >> 4U) << (2 * k);
      out[row / 4 * kCacheRowBytes + i * stride] = static_cast<std::uint8_t>(bits);
    }
  }
}

CICADA_INLINE void store_scales(const StoredHead& head, std::size_t dim, std::size_t slot,
                                std::byte* out) {
  auto* scales = reinterpret_cast<std::uint16_t*>(out);
  for (std::size_t g = 0; g < cache_scale_groups(dim); ++g) {
    scales[g * kSlabTokens + slot] = head.scales[g];
  }
}

void store_key(CacheType type, const float* x, std::size_t head_dim, std::size_t slot,
               std::byte* slab) {
  if (type == CacheType::kF16) {
    std::uint16_t lanes[kMostHeadDim];
    to_f16(x, head_dim, round_up16(head_dim), lanes);
    auto* keys = reinterpret_cast<std::uint16_t*>(slab);
    for (std::size_t d = 0; d < head_dim; ++d) keys[d * kSlabTokens + slot] = lanes[d];
    return;
  }
  const std::size_t rows = cache_key_rows(head_dim);
  StoredHead head;
  quantize_head(x, head_dim, rows * 4, cache_offset(type), true, head);
  store_planes(type, head.elements, rows, 4, 1, reinterpret_cast<std::uint8_t*>(slab) + slot * 4);
  store_scales(head, head_dim, slot, slab + key_plane_bytes(type, head_dim));
}

void store_value(CacheType type, const float* x, std::size_t value_dim, std::size_t slot,
                 std::byte* slab) {
  if (type == CacheType::kF16) {
    std::uint16_t lanes[kMostHeadDim];
    to_f16(x, value_dim, round_up16(value_dim), lanes);
    __builtin_memcpy(slab + slot * value_dim * sizeof(std::uint16_t), lanes,
                     value_dim * sizeof(std::uint16_t));
    return;
  }
  const std::size_t rows = cache_value_rows(value_dim);
  const std::size_t quad_bytes = value_quad_bytes(type, value_dim);
  StoredHead head;
  quantize_head(x, value_dim, rows * 16, cache_offset(type), false, head);
  store_planes(type, head.elements, rows, 16, 4,
               reinterpret_cast<std::uint8_t*>(slab + slot / 4 * quad_bytes) + slot % 4);
  store_scales(head, value_dim, slot, slab + kSlabTokens / 4 * quad_bytes);
}

}  // namespace
}  // namespace cicada::kernels
