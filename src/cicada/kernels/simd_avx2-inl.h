// Sixteen lanes as pairs of 256-bit registers. Included by simd-inl.h only, which says what is
// promised.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "cicada/kernels/simd_inline.h"
#include "cicada/kernels/simd_reduce-inl.h"
#include "cicada/tensor/half.h"

namespace cicada::kernels {
namespace {

struct F32x16 {
  __m256 lo, hi;
};
struct I32x16 {
  __m256i lo, hi;
};
struct U8x64 {
  __m256i lo, hi;
};

CICADA_INLINE F32x16 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
CICADA_INLINE void store(float* p, F32x16 a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
CICADA_INLINE F32x16 broadcast(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
CICADA_INLINE F32x16 operator+(F32x16 a, F32x16 b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
CICADA_INLINE F32x16 operator-(F32x16 a, F32x16 b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
CICADA_INLINE F32x16 operator*(F32x16 a, F32x16 b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
CICADA_INLINE F32x16 operator/(F32x16 a, F32x16 b) {
  return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
CICADA_INLINE F32x16 max(F32x16 a, F32x16 b) {
  return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}
CICADA_INLINE F32x16 min(F32x16 a, F32x16 b) {
  return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
}
CICADA_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
CICADA_INLINE F32x16 abs(F32x16 a) {
  const __m256 sign = _mm256_set1_ps(-0.0F);
  return {_mm256_andnot_ps(sign, a.lo), _mm256_andnot_ps(sign, a.hi)};
}
CICADA_INLINE F32x16 round(F32x16 a) {
  return {_mm256_round_ps(a.lo, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
          _mm256_round_ps(a.hi, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
CICADA_INLINE F32x16 load_f16(const std::uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}
CICADA_INLINE void store_f16(std::uint16_t* p, F32x16 a) {
  constexpr int kMode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a.lo, kMode));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(a.hi, kMode));
}
CICADA_INLINE __m256 widen_bf16(const std::uint16_t* p) {
  const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}
CICADA_INLINE F32x16 load_bf16(const std::uint16_t* p) {
  return {widen_bf16(p), widen_bf16(p + 8)};
}
CICADA_INLINE __m256i round_to_bf16(__m256 a) {
  const __m256i bits = _mm256_castps_si256(a);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), odd);
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256 is_nan = _mm256_cmp_ps(a, a, _CMP_UNORD_Q);
  return _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(is_nan)), 16);
}
CICADA_INLINE void store_bf16(std::uint16_t* p, F32x16 a) {
  const __m256i halves = _mm256_packus_epi32(round_to_bf16(a.lo), round_to_bf16(a.hi));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(halves, 0xD8));
}
// Lane i gets lane i xor kDistance (1, 2, 4 or 8).
template <int kDistance>
CICADA_INLINE F32x16 swap_lanes(F32x16 a) {
  if constexpr (kDistance == 8) {
    return {a.hi, a.lo};
  } else if constexpr (kDistance == 4) {
    return {_mm256_permute2f128_ps(a.lo, a.lo, 1), _mm256_permute2f128_ps(a.hi, a.hi, 1)};
  } else {
    constexpr int kOrder = kDistance == 2 ? 0x4E : 0xB1;
    return {_mm256_permute_ps(a.lo, kOrder), _mm256_permute_ps(a.hi, kOrder)};
  }
}
CICADA_INLINE __m256 exp2_int8(__m256 n) {
  const __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
  return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
}
CICADA_INLINE F32x16 exp2_int(F32x16 n) { return {exp2_int8(n.lo), exp2_int8(n.hi)}; }
CICADA_INLINE F32x16 select_range(F32x16 a, F32x16 b, std::int64_t first, std::int64_t low,
                                  std::int64_t high) {
  alignas(64) float keep[16];
  alignas(64) float other[16];
  store(keep, a);
  store(other, b);
  for (std::int64_t i = 0; i < 16; ++i) {
    if (first + i < low || first + i > high) keep[i] = other[i];
  }
  return load(keep);
}
CICADA_INLINE F32x16 select_greater(F32x16 x, F32x16 limit, F32x16 a, F32x16 b) {
  return {_mm256_blendv_ps(b.lo, a.lo, _mm256_cmp_ps(x.lo, limit.lo, _CMP_GT_OQ)),
          _mm256_blendv_ps(b.hi, a.hi, _mm256_cmp_ps(x.hi, limit.hi, _CMP_GT_OQ))};
}

CICADA_INLINE I32x16 broadcast_i32(std::int32_t x) {
  return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)};
}
CICADA_INLINE I32x16 operator+(I32x16 a, I32x16 b) {
  return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)};
}
CICADA_INLINE I32x16 operator-(I32x16 a, I32x16 b) {
  return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)};
}
template <int kBits>
CICADA_INLINE I32x16 shift_right(I32x16 a) {
  return {_mm256_srai_epi32(a.lo, kBits), _mm256_srai_epi32(a.hi, kBits)};
}
CICADA_INLINE F32x16 to_f32(I32x16 a) {
  return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)};
}
CICADA_INLINE I32x16 to_i32(F32x16 a) {
  return {_mm256_cvtps_epi32(a.lo), _mm256_cvtps_epi32(a.hi)};
}
template <int kBits>
CICADA_INLINE I32x16 shift_left(I32x16 a) {
  return {_mm256_slli_epi32(a.lo, kBits), _mm256_slli_epi32(a.hi, kBits)};
}
CICADA_INLINE F32x16 load_u8(const std::uint8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return to_f32({_mm256_cvtepu8_epi32(bytes), _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8))});
}
CICADA_INLINE F32x16 load_i8(const std::uint8_t* p) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return to_f32({_mm256_cvtepi8_epi32(bytes), _mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8))});
}
CICADA_INLINE I32x16 load_i32(const std::int32_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 8))};
}
CICADA_INLINE void store_i32(std::int32_t* p, I32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.lo);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8), a.hi);
}
CICADA_INLINE void store_low_bytes(std::uint8_t* p, I32x16 a) {
  alignas(64) std::int32_t lanes[16];
  store_i32(lanes, a);
  for (int i = 0; i < 16; ++i) p[i] = static_cast<std::uint8_t>(lanes[i]);
}
CICADA_INLINE I32x16 and_bits(I32x16 a, std::int32_t mask) {
  const __m256i all = _mm256_set1_epi32(mask);
  return {_mm256_and_si256(a.lo, all), _mm256_and_si256(a.hi, all)};
}
CICADA_INLINE void store_i8(std::int8_t* p, I32x16 a) {
  alignas(64) std::int32_t lanes[16];
  store_i32(lanes, a);
  for (int i = 0; i < 16; ++i) p[i] = static_cast<std::int8_t>(lanes[i]);
}

CICADA_INLINE float reduce_add(F32x16 a) { return reduce_add8(_mm256_add_ps(a.lo, a.hi)); }
CICADA_INLINE float reduce_max(F32x16 a) { return reduce_max8(_mm256_max_ps(a.lo, a.hi)); }
// Sum of sixteen lanes; the caller knows that it fits.
CICADA_INLINE std::int32_t reduce_add(I32x16 a) {
  const __m256i eight = _mm256_add_epi32(a.lo, a.hi);
  return reduce8(eight, [](__m128i x, __m128i y) { return _mm_add_epi32(x, y); });
}
CICADA_INLINE std::int32_t reduce_max(I32x16 a) {
  const __m256i eight = _mm256_max_epi32(a.lo, a.hi);
  return reduce8(eight, [](__m128i x, __m128i y) { return _mm_max_epi32(x, y); });
}
CICADA_INLINE I32x16 max(I32x16 a, I32x16 b) {
  return {_mm256_max_epi32(a.lo, b.lo), _mm256_max_epi32(a.hi, b.hi)};
}
// The same bits as integers.
CICADA_INLINE I32x16 bits_of(F32x16 a) {
  return {_mm256_castps_si256(a.lo), _mm256_castps_si256(a.hi)};
}
CICADA_INLINE F32x16 float_of(I32x16 bits) {
  return {_mm256_castsi256_ps(bits.lo), _mm256_castsi256_ps(bits.hi)};
}

CICADA_INLINE U8x64 load_bytes(const std::uint8_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32))};
}
CICADA_INLINE void store_bytes(std::uint8_t* p, U8x64 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.lo);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 32), a.hi);
}
template <int kBit>
CICADA_INLINE U8x64 nibble(U8x64 a) {
  const __m256i mask = _mm256_set1_epi8(15);
  return {_mm256_and_si256(_mm256_srli_epi16(a.lo, kBit), mask),
          _mm256_and_si256(_mm256_srli_epi16(a.hi, kBit), mask)};
}
template <int kBit>
CICADA_INLINE U8x64 two_bits(U8x64 a) {
  const __m256i mask = _mm256_set1_epi8(3);
  return {_mm256_and_si256(_mm256_srli_epi16(a.lo, kBit), mask),
          _mm256_and_si256(_mm256_srli_epi16(a.hi, kBit), mask)};
}
template <int kFrom, int kTo>
CICADA_INLINE __m256i or_two_bits32(__m256i a, __m256i b) {
  __m256i moved = b;
  if constexpr (kFrom > kTo) moved = _mm256_srli_epi16(b, kFrom - kTo);
  if constexpr (kFrom < kTo) moved = _mm256_slli_epi16(b, kTo - kFrom);
  return _mm256_or_si256(a, _mm256_and_si256(moved, _mm256_set1_epi8(3 << kTo)));
}
template <int kFrom, int kTo>
CICADA_INLINE U8x64 or_two_bits(U8x64 a, U8x64 b) {
  return {or_two_bits32<kFrom, kTo>(a.lo, b.lo), or_two_bits32<kFrom, kTo>(a.hi, b.hi)};
}
CICADA_INLINE __m256i add_where32(__m256i a, const std::uint8_t* p, char value) {
  std::int32_t mask = 0;
  __builtin_memcpy(&mask, p, sizeof mask);
  const __m256i which =
      _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  const __m256i bit = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201ULL));
  const __m256i spread = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(mask), which), bit);
  const __m256i set = _mm256_cmpeq_epi8(spread, bit);
  return _mm256_add_epi8(a, _mm256_and_si256(set, _mm256_set1_epi8(value)));
}
CICADA_INLINE U8x64 add_where(U8x64 a, const std::uint8_t* p, char value) {
  return {add_where32(a.lo, p, value), add_where32(a.hi, p + 4, value)};
}
CICADA_INLINE U8x64 lookup(const std::uint8_t* table, U8x64 a) {
  const __m256i t =
      _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(table)));
  return {_mm256_shuffle_epi8(t, a.lo), _mm256_shuffle_epi8(t, a.hi)};
}
#if defined(__AVXVNNI__)
CICADA_INLINE __m256i dot4_half(__m256i acc, __m256i w, __m256i x) {
  return _mm256_dpbusd_avx_epi32(acc, w, x);
}
#else
// maddubs saturates its 16-bit sums when both unsigned operands are large, so the bytes are split
// into low 7 bits and top bit: 127 * 127 * 2 fits, and the top bit's product is added exactly.
CICADA_INLINE __m256i dot4_half(__m256i acc, __m256i w, __m256i x) {
  const __m256i ones = _mm256_set1_epi16(1);
  const __m256i low = _mm256_and_si256(w, _mm256_set1_epi8(127));
  const __m256i top = _mm256_and_si256(_mm256_srli_epi16(w, 7), _mm256_set1_epi8(1));
  const __m256i sum_low = _mm256_madd_epi16(_mm256_maddubs_epi16(low, x), ones);
  const __m256i sum_top = _mm256_madd_epi16(_mm256_maddubs_epi16(top, x), ones);
  return _mm256_add_epi32(acc, _mm256_add_epi32(sum_low, _mm256_slli_epi32(sum_top, 7)));
}
#endif
// Bytes that are the integers minus `value`.
CICADA_INLINE U8x64 subtract_bytes(U8x64 a, char value) {
  const __m256i all = _mm256_set1_epi8(value);
  return {_mm256_sub_epi8(a.lo, all), _mm256_sub_epi8(a.hi, all)};
}
// As dot4_half, where sums of two products stay below 2^15: nothing saturates.
CICADA_INLINE __m256i dot4_small(__m256i acc, __m256i x, __m256i w) {
#if defined(__AVXVNNI__)
  return _mm256_dpbusd_avx_epi32(acc, x, w);
#else
  const __m256i pairs = _mm256_maddubs_epi16(x, w);
  return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
#endif
}
// acc[i] + sum over j < 4 of x[j] (unsigned) * w[4i + j] (signed), sums of two products below 2^15.
// Exact.
CICADA_INLINE I32x16 dot4_signed(I32x16 acc, U8x64 w, const std::uint8_t* x) {
  std::int32_t word = 0;
  __builtin_memcpy(&word, x, sizeof word);
  const __m256i all = _mm256_set1_epi32(word);
  return {dot4_small(acc.lo, all, w.lo), dot4_small(acc.hi, all, w.hi)};
}
CICADA_INLINE I32x16 dot4(I32x16 acc, U8x64 w, const std::int8_t* x) {
  std::int32_t word = 0;
  __builtin_memcpy(&word, x, sizeof word);
  const __m256i all = _mm256_set1_epi32(word);
  return {dot4_half(acc.lo, w.lo, all), dot4_half(acc.hi, w.hi, all)};
}

}  // namespace
}  // namespace cicada::kernels
