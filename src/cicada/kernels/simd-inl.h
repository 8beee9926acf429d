// Sixteen float or int32 lanes, written once for every kernel level.
//
// Included only by ISA files (x86_<level>.cc), each of which is compiled with its level's flags;
// all of it has internal linkage, so nothing leaks between levels. A level is told by the
// compiler's own macros. Every operation gives the same bits on every level: elementwise IEEE
// arithmetic, fused multiply-add where it says fma, reductions in one fixed tree.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "cicada/tensor/half.h"

// The lanes of the scalar level are loops: forcing them into one function only bloats it.
#if defined(__AVX2__)
#define CICADA_INLINE [[gnu::always_inline]] inline
#else
#define CICADA_INLINE inline
#endif

namespace cicada::kernels {
namespace {

#if defined(__AVX512F__)

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
// 2^n for integral n in [-126, 127].
CICADA_INLINE F32x16 exp2_int(F32x16 n) {
  const __m512i biased = _mm512_add_epi32(_mm512_cvtps_epi32(n.v), _mm512_set1_epi32(127));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(biased, 23))};
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
// The low byte of each lane, saturated.
CICADA_INLINE void store_i8(std::int8_t* p, I32x16 a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtsepi32_epi8(a.v));
}
CICADA_INLINE void store_i32(std::int32_t* p, I32x16 a) { _mm512_storeu_si512(p, a.v); }

CICADA_INLINE U8x64 load_bytes(const std::uint8_t* p) { return {_mm512_loadu_si512(p)}; }
// Bits kBit … kBit+3 (or +1) of every byte.
template <int kBit>
CICADA_INLINE U8x64 nibble(U8x64 a) {
  return {_mm512_and_si512(kBit == 0 ? a.v : _mm512_srli_epi16(a.v, kBit), _mm512_set1_epi8(15))};
}
template <int kBit>
CICADA_INLINE U8x64 two_bits(U8x64 a) {
  return {_mm512_and_si512(kBit == 0 ? a.v : _mm512_srli_epi16(a.v, kBit), _mm512_set1_epi8(3))};
}
// a | b << kBits, where no bits collide or leave their byte.
template <int kBits>
CICADA_INLINE U8x64 or_shifted(U8x64 a, U8x64 b) {
  return {_mm512_or_si512(a.v, _mm512_slli_epi16(b.v, kBits))};
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
// acc[i] + sum over j < 4 of w[4i + j] (unsigned) * x[j] (signed). Exact.
CICADA_INLINE I32x16 dot4(I32x16 acc, U8x64 w, const std::int8_t* x) {
  std::int32_t word = 0;
  __builtin_memcpy(&word, x, sizeof word);
  return {_mm512_dpbusd_epi32(acc.v, w.v, _mm512_set1_epi32(word))};
}

#elif defined(__AVX2__)

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
CICADA_INLINE void store_i32(std::int32_t* p, I32x16 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a.lo);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8), a.hi);
}
CICADA_INLINE void store_i8(std::int8_t* p, I32x16 a) {
  alignas(64) std::int32_t lanes[16];
  store_i32(lanes, a);
  for (int i = 0; i < 16; ++i) p[i] = static_cast<std::int8_t>(lanes[i]);
}

CICADA_INLINE U8x64 load_bytes(const std::uint8_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32))};
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
template <int kBits>
CICADA_INLINE U8x64 or_shifted(U8x64 a, U8x64 b) {
  return {_mm256_or_si256(a.lo, _mm256_slli_epi16(b.lo, kBits)),
          _mm256_or_si256(a.hi, _mm256_slli_epi16(b.hi, kBits))};
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
CICADA_INLINE I32x16 dot4(I32x16 acc, U8x64 w, const std::int8_t* x) {
  std::int32_t word = 0;
  __builtin_memcpy(&word, x, sizeof word);
  const __m256i all = _mm256_set1_epi32(word);
  return {dot4_half(acc.lo, w.lo, all), dot4_half(acc.hi, w.hi, all)};
}

#else

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
  for (int i = 0; i < 16; ++i) a.v[i] += b.v[i];
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
CICADA_INLINE void store_i8(std::int8_t* p, I32x16 a) {
  for (int i = 0; i < 16; ++i) p[i] = static_cast<std::int8_t>(a.v[i]);
}
CICADA_INLINE void store_i32(std::int32_t* p, I32x16 a) { __builtin_memcpy(p, a.v, sizeof a.v); }

CICADA_INLINE U8x64 load_bytes(const std::uint8_t* p) {
  U8x64 r;
  __builtin_memcpy(r.v, p, sizeof r.v);
  return r;
}
template <int kBit>
CICADA_INLINE U8x64 nibble(U8x64 a) {
  return map(a, [](int, int x) { return (x >> kBit) & 15; });
}
template <int kBit>
CICADA_INLINE U8x64 two_bits(U8x64 a) {
  return map(a, [](int, int x) { return (x >> kBit) & 3; });
}
template <int kBits>
CICADA_INLINE U8x64 or_shifted(U8x64 a, U8x64 b) {
  return map(a, [&b](int i, int x) { return x | b.v[i] << kBits; });
}
CICADA_INLINE U8x64 add_where(U8x64 a, const std::uint8_t* p, char value) {
  return map(a, [p, value](int i, int x) { return x + ((p[i / 8] >> (i % 8)) & 1) * value; });
}
CICADA_INLINE U8x64 lookup(const std::uint8_t* table, U8x64 a) {
  return map(a, [table](int, int x) { return table[x & 15]; });
}
CICADA_INLINE I32x16 dot4(I32x16 acc, U8x64 w, const std::int8_t* x) {
  for (int i = 0; i < 16; ++i) {
    acc.v[i] +=
        w.v[4 * i] * x[0] + w.v[4 * i + 1] * x[1] + w.v[4 * i + 2] * x[2] + w.v[4 * i + 3] * x[3];
  }
  return acc;
}

#endif

CICADA_INLINE F32x16 zero() { return broadcast(0.0F); }

// Sum and maximum of sixteen lanes in a fixed tree: 8 + 8, 4 + 4, 2 + 2, 1 + 1.
CICADA_INLINE float reduce_add(F32x16 a) {
  alignas(64) float lanes[16];
  store(lanes, a);
  for (int width = 8; width >= 1; width /= 2) {
    for (int i = 0; i < width; ++i) lanes[i] = lanes[i] + lanes[i + width];
  }
  return lanes[0];
}
CICADA_INLINE float reduce_max(F32x16 a) {
  alignas(64) float lanes[16];
  store(lanes, a);
  for (int width = 8; width >= 1; width /= 2) {
    for (int i = 0; i < width; ++i)
      lanes[i] = lanes[i] > lanes[i + width] ? lanes[i] : lanes[i + width];
  }
  return lanes[0];
}

// e^x to within 2 units in the last place for x in (-87, 88]; exactly 0 for x <= -87; e^88
// above 88. Cody-Waite reduction (ln 2 in two parts), then a polynomial of degree 7 on [-ln2/2,
// ln2/2].
CICADA_INLINE F32x16 exp(F32x16 x) {
  const F32x16 clamped = max(min(x, broadcast(88.0F)), broadcast(-87.0F));
  const F32x16 n = round(clamped * broadcast(1.44269504F));
  F32x16 r = fma(n, broadcast(-0.693145752F), clamped);
  r = fma(n, broadcast(-1.42860677e-6F), r);
  F32x16 p = broadcast(1.98756915e-4F);
  p = fma(p, r, broadcast(1.39819994e-3F));
  p = fma(p, r, broadcast(8.33345205e-3F));
  p = fma(p, r, broadcast(4.16657962e-2F));
  p = fma(p, r, broadcast(1.66666657e-1F));
  p = fma(p, r, broadcast(5.00000000e-1F));
  p = fma(p, r * r, r) + broadcast(1.0F);
  const F32x16 result = p * exp2_int(n);
  return select_greater(x, broadcast(-87.0F), result, zero());
}

}  // namespace
}  // namespace cicada::kernels
