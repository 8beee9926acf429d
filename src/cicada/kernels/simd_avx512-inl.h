// Sixteen lanes as 512-bit registers. Included by simd-inl.h only, which says what is promised.
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
  __m512 v;
};
struct I32x16 {
  __m512i v;
};
struct U8x64 {
  __m512i v;
};

CICADA_INLINE F32x16 load(const float* p) { return {_mm512_loadu_ps(p)}; }
CICADA_INLINE void store(float* p, F32x16 a) { _mm512_storeu_ps(p, a.v); }
CICADA_INLINE F32x16 broadcast(float x) { return {_mm512_set1_ps(x)}; }
CICADA_INLINE F32x16 operator+(F32x16 a, F32x16 b) { return {_mm512_add_ps(a.v, b.v)}; }
CICADA_INLINE F32x16 operator-(F32x16 a, F32x16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
CICADA_INLINE F32x16 operator*(F32x16 a, F32x16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
CICADA_INLINE F32x16 operator/(F32x16 a, F32x16 b) { return {_mm512_div_ps(a.v, b.v)}; }
CICADA_INLINE F32x16 max(F32x16 a, F32x16 b) { return {_mm512_max_ps(a.v, b.v)}; }
CICADA_INLINE F32x16 min(F32x16 a, F32x16 b) { return {_mm512_min_ps(a.v, b.v)}; }
// a * b + c, rounded once.
CICADA_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
CICADA_INLINE F32x16 abs(F32x16 a) { return {_mm512_abs_ps(a.v)}; }
// Rounds to the nearest integer, ties to even.
CICADA_INLINE F32x16 round(F32x16 a) {
  return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
CICADA_INLINE F32x16 load_f16(const std::uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
CICADA_INLINE void store_f16(std::uint16_t* p, F32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
CICADA_INLINE F32x16 load_bf16(const std::uint16_t* p) {
  const __m512i wide =
      _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}
// Rounds to nearest even; NaN stays NaN.
CICADA_INLINE void store_bf16(std::uint16_t* p, F32x16 a) {
  const __m512i bits = _mm512_castps_si512(a.v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), odd);
  const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
  const __mmask16 is_nan = _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
  const __m512i result = _mm512_mask_blend_epi32(is_nan, rounded, quiet);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtepi32_epi16(_mm512_srli_epi32(result, 16)));
}
// 2^n for integral n in [-126, 127].
CICADA_INLINE F32x16 exp2_int(F32x16 n) {
  const __m512i biased = _mm512_add_epi32(_mm512_cvtps_epi32(n.v), _mm512_set1_epi32(127));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(biased, 23))};
}
// Lane i gets lane i xor kDistance (1, 2, 4 or 8).
template <int kDistance>
CICADA_INLINE F32x16 swap_lanes(F32x16 a) {
  if constexpr (kDistance >= 4) {
    return {_mm512_shuffle_f32x4(a.v, a.v, kDistance == 8 ? 0x4E : 0xB1)};
  } else {
    return {_mm512_permute_ps(a.v, kDistance == 2 ? 0x4E : 0xB1)};
  }
}
// Lanes i with first + i in [low, high] keep a, the others take b.
CICADA_INLINE F32x16 select_range(F32x16 a, F32x16 b, std::int64_t first, std::int64_t low,
                                  std::int64_t high) {
  const std::int64_t begin = low - first < 0 ? 0 : (low - first > 16 ? 16 : low - first);
  const std::int64_t end =
      high + 1 - first < 0 ? 0 : (high + 1 - first > 16 ? 16 : high + 1 - first);
  const std::uint32_t mask = begin >= end ? 0U : ((1U << end) - 1U) & ~((1U << begin) - 1U);
  return {_mm512_mask_blend_ps(static_cast<__mmask16>(mask), b.v, a.v)};
}
// Lanes where x > limit keep a, the others take b.
CICADA_INLINE F32x16 select_greater(F32x16 x, F32x16 limit, F32x16 a, F32x16 b) {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(x.v, limit.v, _CMP_GT_OQ), b.v, a.v)};
}

CICADA_INLINE I32x16 broadcast_i32(std::int32_t x) { return {_mm512_set1_epi32(x)}; }
CICADA_INLINE I32x16 operator+(I32x16 a, I32x16 b) { return {_mm512_add_epi32(a.v, b.v)}; }
CICADA_INLINE I32x16 operator-(I32x16 a, I32x16 b) { return {_mm512_sub_epi32(a.v, b.v)}; }
// a / 2^kBits, rounded down.
template <int kBits>
CICADA_INLINE I32x16 shift_right(I32x16 a) {
  return {_mm512_srai_epi32(a.v, kBits)};
}
CICADA_INLINE F32x16 to_f32(I32x16 a) { return {_mm512_cvtepi32_ps(a.v)}; }
CICADA_INLINE I32x16 to_i32(F32x16 a) { return {_mm512_cvtps_epi32(a.v)}; }
template <int kBits>
CICADA_INLINE I32x16 shift_left(I32x16 a) {
  return {_mm512_slli_epi32(a.v, kBits)};
}
CICADA_INLINE F32x16 load_u8(const std::uint8_t* p) {
  return {_mm512_cvtepi32_ps(
      _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}
CICADA_INLINE F32x16 load_i8(const std::uint8_t* p) {
  return {_mm512_cvtepi32_ps(
      _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}
// The low byte of each lane.
CICADA_INLINE void store_low_bytes(std::uint8_t* p, I32x16 a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a.v));
}
CICADA_INLINE I32x16 and_bits(I32x16 a, std::int32_t mask) {
  return {_mm512_and_si512(a.v, _mm512_set1_epi32(mask))};
}
// The low byte of each lane, saturated.
CICADA_INLINE void store_i8(std::int8_t* p, I32x16 a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtsepi32_epi8(a.v));
}
CICADA_INLINE I32x16 load_i32(const std::int32_t* p) { return {_mm512_loadu_si512(p)}; }
CICADA_INLINE void store_i32(std::int32_t* p, I32x16 a) { _mm512_storeu_si512(p, a.v); }

CICADA_INLINE float reduce_add(F32x16 a) {
  return reduce_add8(_mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1)));
}
CICADA_INLINE float reduce_max(F32x16 a) {
  return reduce_max8(_mm256_max_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1)));
}
// Sum of sixteen lanes; the caller knows that it fits.
CICADA_INLINE std::int32_t reduce_add(I32x16 a) { return _mm512_reduce_add_epi32(a.v); }
CICADA_INLINE std::int32_t reduce_max(I32x16 a) { return _mm512_reduce_max_epi32(a.v); }
CICADA_INLINE I32x16 max(I32x16 a, I32x16 b) { return {_mm512_max_epi32(a.v, b.v)}; }
// The same bits as integers.
CICADA_INLINE I32x16 bits_of(F32x16 a) { return {_mm512_castps_si512(a.v)}; }
CICADA_INLINE F32x16 float_of(I32x16 bits) { return {_mm512_castsi512_ps(bits.v)}; }

CICADA_INLINE U8x64 load_bytes(const std::uint8_t* p) { return {_mm512_loadu_si512(p)}; }
CICADA_INLINE void store_bytes(std::uint8_t* p, U8x64 a) { _mm512_storeu_si512(p, a.v); }
// Bits kBit … kBit+3 (or +1) of every byte.
template <int kBit>
CICADA_INLINE U8x64 nibble(U8x64 a) {
  return {_mm512_and_si512(kBit == 0 ? a.v : _mm512_srli_epi16(a.v, kBit), _mm512_set1_epi8(15))};
}
template <int kBit>
CICADA_INLINE U8x64 two_bits(U8x64 a) {
  return {_mm512_and_si512(kBit == 0 ? a.v : _mm512_srli_epi16(a.v, kBit), _mm512_set1_epi8(3))};
}
// a | (two bits of each byte of b from kFrom on) << kTo.
template <int kFrom, int kTo>
CICADA_INLINE U8x64 or_two_bits(U8x64 a, U8x64 b) {
  constexpr int kOr = 0xF8;  // of the first and (the second and the third)
  __m512i moved = b.v;
  if constexpr (kFrom > kTo) moved = _mm512_srli_epi16(b.v, kFrom - kTo);
  if constexpr (kFrom < kTo) moved = _mm512_slli_epi16(b.v, kTo - kFrom);
  return {_mm512_ternarylogic_epi32(a.v, moved, _mm512_set1_epi8(3 << kTo), kOr)};
}
// Adds `value` to the bytes whose bit in the 64-bit mask at p is set.
CICADA_INLINE U8x64 add_where(U8x64 a, const std::uint8_t* p, char value) {
  std::uint64_t mask = 0;
  __builtin_memcpy(&mask, p, sizeof mask);
  return {_mm512_mask_add_epi8(a.v, mask, a.v, _mm512_set1_epi8(value))};
}
// table[byte] for bytes below 16.
CICADA_INLINE U8x64 lookup(const std::uint8_t* table, U8x64 a) {
  const __m128i t = _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return {_mm512_shuffle_epi8(_mm512_broadcast_i32x4(t), a.v)};
}
// Bytes that are the integers minus `value`.
CICADA_INLINE U8x64 subtract_bytes(U8x64 a, char value) {
  return {_mm512_sub_epi8(a.v, _mm512_set1_epi8(value))};
}
// acc[i] + sum over j < 4 of x[j] (unsigned) * w[4i + j] (signed), sums of two products below 2^15.
// Exact.
CICADA_INLINE I32x16 dot4_signed(I32x16 acc, U8x64 w, const std::uint8_t* x) {
  std::int32_t word = 0;
  __builtin_memcpy(&word, x, sizeof word);
  return {_mm512_dpbusd_epi32(acc.v, _mm512_set1_epi32(word), w.v)};
}
// acc[i] + sum over j < 4 of w[4i + j] (unsigned) * x[j] (signed). Exact.
CICADA_INLINE I32x16 dot4(I32x16 acc, U8x64 w, const std::int8_t* x) {
  std::int32_t word = 0;
  __builtin_memcpy(&word, x, sizeof word);
  return {_mm512_dpbusd_epi32(acc.v, w.v, _mm512_set1_epi32(word))};
}

}  // namespace
}  // namespace cicada::kernels
