// Sixteen lanes as plain loops, for any x86-64 machine. Included by simd-inl.h only, which says
// what is promised.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "cicada/kernels/simd_inline.h"
#include "cicada/tensor/half.h"

namespace cicada::kernels {
namespace {

struct F32x16 {
  float v[16];
};
struct I32x16 {
  std::int32_t v[16];
};
struct U8x64 {
  std::uint8_t v[64];
};

template <typename Op>
CICADA_INLINE F32x16 map(F32x16 a, F32x16 b, Op op) {
  F32x16 r;
  for (int i = 0; i < 16; ++i) r.v[i] = op(a.v[i], b.v[i]);
  return r;
}
template <typename Op>
CICADA_INLINE U8x64 map(U8x64 a, Op op) {
  U8x64 r;
  for (int i = 0; i < 64; ++i) r.v[i] = static_cast<std::uint8_t>(op(i, a.v[i]));
  return r;
}

CICADA_INLINE F32x16 load(const float* p) {
  F32x16 r;
  __builtin_memcpy(r.v, p, sizeof r.v);
  return r;
}
CICADA_INLINE void store(float* p, F32x16 a) { __builtin_memcpy(p, a.v, sizeof a.v); }
CICADA_INLINE F32x16 broadcast(float x) {
  F32x16 r;
  for (float& lane : r.v) lane = x;
  return r;
}
CICADA_INLINE F32x16 operator+(F32x16 a, F32x16 b) {
  return map(a, b, [](float x, float y) { return x + y; });
}
CICADA_INLINE F32x16 operator-(F32x16 a, F32x16 b) {
  return map(a, b, [](float x, float y) { return x - y; });
}
CICADA_INLINE F32x16 operator*(F32x16 a, F32x16 b) {
  return map(a, b, [](float x, float y) { return x * y; });
}
CICADA_INLINE F32x16 operator/(F32x16 a, F32x16 b) {
  return map(a, b, [](float x, float y) { return x / y; });
}
// As the vector instructions: the second operand when either is NaN.
CICADA_INLINE F32x16 max(F32x16 a, F32x16 b) {
  return map(a, b, [](float x, float y) { return x > y ? x : y; });
}
CICADA_INLINE F32x16 min(F32x16 a, F32x16 b) {
  return map(a, b, [](float x, float y) { return x < y ? x : y; });
}
CICADA_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  F32x16 r;
  for (int i = 0; i < 16; ++i) r.v[i] = __builtin_fmaf(a.v[i], b.v[i], c.v[i]);
  return r;
}
CICADA_INLINE F32x16 abs(F32x16 a) {
  return map(a, a, [](float x, float) { return __builtin_fabsf(x); });
}
CICADA_INLINE F32x16 round(F32x16 a) {
  return map(a, a, [](float x, float) { return __builtin_rintf(x); });
}
CICADA_INLINE F32x16 load_f16(const std::uint16_t* p) {
  F32x16 r;
  for (int i = 0; i < 16; ++i) r.v[i] = tensor::f16_to_f32(p[i]);
  return r;
}
CICADA_INLINE void store_f16(std::uint16_t* p, F32x16 a) {
  for (int i = 0; i < 16; ++i) p[i] = tensor::f32_to_f16(a.v[i]);
}
CICADA_INLINE F32x16 load_bf16(const std::uint16_t* p) {
  F32x16 r;
  for (int i = 0; i < 16; ++i) r.v[i] = tensor::bf16_to_f32(p[i]);
  return r;
}
CICADA_INLINE void store_bf16(std::uint16_t* p, F32x16 a) {
  for (int i = 0; i < 16; ++i) p[i] = tensor::f32_to_bf16(a.v[i]);
}
// Lane i gets lane i xor kDistance (1, 2, 4 or 8).
template <int kDistance>
CICADA_INLINE F32x16 swap_lanes(F32x16 a) {
  F32x16 r;
  for (int i = 0; i < 16; ++i) r.v[i] = a.v[i ^ kDistance];
  return r;
}
CICADA_INLINE F32x16 exp2_int(F32x16 n) {
  F32x16 r;
  for (int i = 0; i < 16; ++i) {
    const std::uint32_t bits = static_cast<std::uint32_t>(static_cast<std::int32_t>(n.v[i]) + 127)
                               << 23;
    __builtin_memcpy(&r.v[i], &bits, sizeof bits);
  }
  return r;
}
CICADA_INLINE F32x16 select_range(F32x16 a, F32x16 b, std::int64_t first, std::int64_t low,
                                  std::int64_t high) {
  for (std::int64_t i = 0; i < 16; ++i) {
    if (first + i < low || first + i > high) a.v[i] = b.v[i];
  }
  return a;
}
CICADA_INLINE F32x16 select_greater(F32x16 x, F32x16 limit, F32x16 a, F32x16 b) {
  for (int i = 0; i < 16; ++i) {
    if (!(x.v[i] > limit.v[i])) a.v[i] = b.v[i];
  }
  return a;
}

CICADA_INLINE I32x16 broadcast_i32(std::int32_t x) {
  I32x16 r;
  for (std::int32_t& lane : r.v) lane = x;
  return r;
}
CICADA_INLINE I32x16 operator+(I32x16 a, I32x16 b) {
  // Unsigned, so that it wraps around as registers do.
  for (int i = 0; i < 16; ++i) {
    a.v[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(a.v[i]) +
                                       static_cast<std::uint32_t>(b.v[i]));
  }
  return a;
}
CICADA_INLINE I32x16 operator-(I32x16 a, I32x16 b) {
  for (int i = 0; i < 16; ++i) a.v[i] -= b.v[i];
  return a;
}
template <int kBits>
CICADA_INLINE I32x16 shift_right(I32x16 a) {
  for (std::int32_t& lane : a.v) lane >>= kBits;
  return a;
}
CICADA_INLINE F32x16 to_f32(I32x16 a) {
  F32x16 r;
  for (int i = 0; i < 16; ++i) r.v[i] = static_cast<float>(a.v[i]);
  return r;
}
CICADA_INLINE I32x16 to_i32(F32x16 a) {
  I32x16 r;
  for (int i = 0; i < 16; ++i) r.v[i] = static_cast<std::int32_t>(__builtin_rintf(a.v[i]));
  return r;
}
template <int kBits>
CICADA_INLINE I32x16 shift_left(I32x16 a) {
  for (std::int32_t& lane : a.v) lane = lane * (1 << kBits);
  return a;
}
CICADA_INLINE F32x16 load_u8(const std::uint8_t* p) {
  F32x16 r;
  for (int i = 0; i < 16; ++i) r.v[i] = static_cast<float>(p[i]);
  return r;
}
CICADA_INLINE F32x16 load_i8(const std::uint8_t* p) {
  F32x16 r;
  for (int i = 0; i < 16; ++i) r.v[i] = static_cast<float>(static_cast<std::int8_t>(p[i]));
  return r;
}
CICADA_INLINE void store_low_bytes(std::uint8_t* p, I32x16 a) {
  for (int i = 0; i < 16; ++i) p[i] = static_cast<std::uint8_t>(a.v[i]);
}
CICADA_INLINE I32x16 and_bits(I32x16 a, std::int32_t mask) {
  for (std::int32_t& lane : a.v) lane &= mask;
  return a;
}
CICADA_INLINE void store_i8(std::int8_t* p, I32x16 a) {
  for (int i = 0; i < 16; ++i) p[i] = static_cast<std::int8_t>(a.v[i]);
}
CICADA_INLINE I32x16 load_i32(const std::int32_t* p) {
  I32x16 r;
  __builtin_memcpy(r.v, p, sizeof r.v);
  return r;
}
CICADA_INLINE void store_i32(std::int32_t* p, I32x16 a) { __builtin_memcpy(p, a.v, sizeof a.v); }

CICADA_INLINE float reduce_add(F32x16 a) {
  for (int width = 8; width >= 1; width /= 2) {
    for (int i = 0; i < width; ++i) a.v[i] = a.v[i] + a.v[i + width];
  }
  return a.v[0];
}
CICADA_INLINE float reduce_max(F32x16 a) {
  for (int width = 8; width >= 1; width /= 2) {
    for (int i = 0; i < width; ++i) a.v[i] = a.v[i] > a.v[i + width] ? a.v[i] : a.v[i + width];
  }
  return a.v[0];
}
// Sum of sixteen lanes; the caller knows that it fits.
CICADA_INLINE std::int32_t reduce_add(I32x16 a) {
  std::int32_t sum = 0;
  for (const std::int32_t lane : a.v) sum += lane;
  return sum;
}
CICADA_INLINE std::int32_t reduce_max(I32x16 a) {
  std::int32_t largest = a.v[0];
  for (const std::int32_t lane : a.v) largest = lane > largest ? lane : largest;
  return largest;
}
CICADA_INLINE I32x16 max(I32x16 a, I32x16 b) {
  for (int i = 0; i < 16; ++i) a.v[i] = a.v[i] > b.v[i] ? a.v[i] : b.v[i];
  return a;
}
// The same bits as integers.
CICADA_INLINE I32x16 bits_of(F32x16 a) {
  I32x16 r;
  __builtin_memcpy(r.v, a.v, sizeof r.v);
  return r;
}
CICADA_INLINE F32x16 float_of(I32x16 bits) {
  F32x16 r;
  __builtin_memcpy(r.v, bits.v, sizeof r.v);
  return r;
}

CICADA_INLINE U8x64 load_bytes(const std::uint8_t* p) {
  U8x64 r;
  __builtin_memcpy(r.v, p, sizeof r.v);
  return r;
}
CICADA_INLINE void store_bytes(std::uint8_t* p, U8x64 a) { __builtin_memcpy(p, a.v, sizeof a.v); }
template <int kBit>
CICADA_INLINE U8x64 nibble(U8x64 a) {
  return map(a, [](int, int x) { return (x >> kBit) & 15; });
}
template <int kBit>
CICADA_INLINE U8x64 two_bits(U8x64 a) {
  return map(a, [](int, int x) { return (x >> kBit) & 3; });
}
template <int kFrom, int kTo>
CICADA_INLINE U8x64 or_two_bits(U8x64 a, U8x64 b) {
  return map(a, [&b](int i, int x) { return x | ((b.v[i] >> kFrom) & 3) << kTo; });
}
CICADA_INLINE U8x64 add_where(U8x64 a, const std::uint8_t* p, char value) {
  return map(a, [p, value](int i, int x) { return x + ((p[i / 8] >> (i % 8)) & 1) * value; });
}
CICADA_INLINE U8x64 lookup(const std::uint8_t* table, U8x64 a) {
  return map(a, [table](int, int x) { return table[x & 15]; });
}
// Bytes that are the integers minus `value`.
CICADA_INLINE U8x64 subtract_bytes(U8x64 a, char value) {
  return map(a, [value](int, int x) { return x - value; });
}
// acc[i] + sum over j < 4 of x[j] (unsigned) * w[4i + j] (signed), sums of two products below 2^15.
// Exact.
CICADA_INLINE I32x16 dot4_signed(I32x16 acc, U8x64 w, const std::uint8_t* x) {
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 4; ++j) acc.v[i] += static_cast<std::int8_t>(w.v[4 * i + j]) * x[j];
  }
  return acc;
}
CICADA_INLINE I32x16 dot4(I32x16 acc, U8x64 w, const std::int8_t* x) {
  for (int i = 0; i < 16; ++i) {
    acc.v[i] +=
        w.v[4 * i] * x[0] + w.v[4 * i + 1] * x[1] + w.v[4 * i + 2] * x[2] + w.v[4 * i + 3] * x[3];
  }
  return acc;
}

}  // namespace
}  // namespace cicada::kernels
