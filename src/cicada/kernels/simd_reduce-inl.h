// Folding the eight lanes that the wider levels are left with, in the tree of simd-inl.h.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "cicada/kernels/simd_inline.h"

namespace cicada::kernels {
namespace {

CICADA_INLINE float reduce_add8(__m256 a) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
CICADA_INLINE float reduce_max8(__m256 a) {
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
// Integers, with an operation whose order is free.
template <typename Operation>
CICADA_INLINE std::int32_t reduce8(__m256i a, const Operation& operation) {
  const __m128i four = operation(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
  const __m128i two = operation(four, _mm_unpackhi_epi64(four, four));
  return _mm_cvtsi128_si32(operation(two, _mm_shuffle_epi32(two, 1)));
}

}  // namespace
}  // namespace cicada::kernels
