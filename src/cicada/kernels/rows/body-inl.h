// The row functions of every level; see rows.h for the contract.
#pragma once

#include "cicada/kernels/rows/rows.h"
#include "cicada/kernels/simd-inl.h"

namespace cicada::kernels {
namespace {

// Lanes [0, n) of p, the others 0. Only reads n elements.
CICADA_INLINE F32x16 load_first(const float* p, std::size_t n) {
  alignas(64) float lanes[16] = {};
  __builtin_memcpy(lanes, p, n * sizeof(float));
  return load(lanes);
}

CICADA_INLINE void store_first(float* p, F32x16 a, std::size_t n) {
  alignas(64) float lanes[16];
  store(lanes, a);
  __builtin_memcpy(p, lanes, n * sizeof(float));
}

// Calls body(i, count) for every sixteen elements of n; count is 16 but for the last.
template <typename Body>
CICADA_INLINE void for_lanes(std::size_t n, const Body& body) {
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) body(i, std::size_t{16});
  if (i < n) body(i, n - i);
}

CICADA_INLINE F32x16 load_n(const float* p, std::size_t n) {
  return n == 16 ? load(p) : load_first(p, n);
}
CICADA_INLINE void store_n(float* p, F32x16 a, std::size_t n) {
  if (n == 16) {
    store(p, a);
  } else {
    store_first(p, a, n);
  }
}

void rms_norm(const float* x, const float* gain, float epsilon, std::size_t n, float* y) {
  F32x16 squares = zero();
  for_lanes(n, [&](std::size_t i, std::size_t count) {
    const F32x16 v = load_n(x + i, count);
    squares = fma(v, v, squares);
  });
  const float mean = reduce_add(squares) / static_cast<float>(n);
  const F32x16 inverse = broadcast(1.0F / __builtin_sqrtf(mean + epsilon));
  for_lanes(n, [&](std::size_t i, std::size_t count) {
    store_n(y + i, load_n(x + i, count) * inverse * load_n(gain + i, count), count);
  });
}

CICADA_INLINE std::int32_t sum_bytes(const std::int8_t* q, std::size_t n) {
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += q[i];
  return sum;
}

void quantize(const float* x, std::size_t n, QuantBlock* out, std::size_t stride) {
  for (std::size_t i = 0; i < n; i += 32, out += stride) {
    const F32x16 low = load(x + i);
    const F32x16 high = load(x + i + 16);
    const float largest = reduce_max(max(abs(low), abs(high)));
    const float scale = largest / 127.0F;
    const F32x16 inverse = broadcast(largest > 0.0F ? 127.0F / largest : 0.0F);
    const F32x16 limit = broadcast(127.0F);
    const F32x16 floor = broadcast(-127.0F);
    // In this operand order a NaN becomes -127 here and stays visible in nothing; the scale carries
    // infinities on.
    store_i8(out->q, to_i32(min(max(low * inverse, floor), limit)));
    store_i8(out->q + 16, to_i32(min(max(high * inverse, floor), limit)));
    out->scale = scale;
    out->negative_half_sums[0] = -sum_bytes(out->q, 16);
    out->negative_half_sums[1] = -sum_bytes(out->q + 16, 16);
    out->negative_sum = out->negative_half_sums[0] + out->negative_half_sums[1];
    out->sum = scale * static_cast<float>(-out->negative_sum);
  }
}

void add(const float* x, std::size_t n, float* y) {
  for_lanes(n, [&](std::size_t i, std::size_t count) {
    store_n(y + i, load_n(y + i, count) + load_n(x + i, count), count);
  });
}

void scale(float factor, std::size_t n, float* x) {
  const F32x16 all = broadcast(factor);
  for_lanes(n, [&](std::size_t i, std::size_t count) {
    store_n(x + i, load_n(x + i, count) * all, count);
  });
}

void rope(const float* cosines, const float* sines, std::size_t half, float* x) {
  for_lanes(half, [&](std::size_t i, std::size_t count) {
    const F32x16 c = load_n(cosines + i, count);
    const F32x16 s = load_n(sines + i, count);
    const F32x16 a = load_n(x + i, count);
    const F32x16 b = load_n(x + half + i, count);
    store_n(x + i, a * c - b * s, count);
    store_n(x + half + i, b * c + a * s, count);
  });
}

CICADA_INLINE void to_f16(const float* x, std::size_t count, std::uint16_t (&out)[16]) {
  const F32x16 limit = broadcast(65504.0F);
  const F32x16 v = load_n(x, count);
  store_f16(out, max(min(v, limit), zero() - limit));
}

void store_key(const float* x, std::size_t n, std::uint16_t* tile, std::size_t slot) {
  for_lanes(n, [&](std::size_t i, std::size_t count) {
    std::uint16_t lanes[16];
    to_f16(x + i, count, lanes);
    for (std::size_t j = 0; j < count; ++j) tile[(i + j) * 16 + slot] = lanes[j];
  });
}

void store_value(const float* x, std::size_t n, std::uint16_t* out) {
  for_lanes(n, [&](std::size_t i, std::size_t count) {
    std::uint16_t lanes[16];
    to_f16(x + i, count, lanes);
    __builtin_memcpy(out + i, lanes, count * sizeof(std::uint16_t));
  });
}

}  // namespace
}  // namespace cicada::kernels
