// Products of float rows with a tile: c += a · b, in blocks of rows.
#pragma once

#include "cicada/kernels/simd-inl.h"

namespace cicada::kernels {
namespace {

inline constexpr std::size_t kRowBlock = 4;

// The second factor of a product, sixteen columns at a time: line(t, i) is columns 16 i … 16 i + 15
// of row t.
struct FloatRows {  // [rows][stride]
  const float* data;
  std::size_t stride;
  CICADA_INLINE F32x16 line(std::size_t t, std::size_t i) const {
    return load(data + t * stride + 16 * i);
  }
};

// c[r][16 * i + lane] += sum over t ascending of a[r][t] * b.line(t, first + i)[lane], one fma
// each.
template <std::size_t kRows, std::size_t kVectors, typename Factor>
CICADA_INLINE void multiply_add(const float* const (&a)[kRowBlock], std::size_t depth, Factor b,
                                std::size_t first, float* const (&c)[kRowBlock]) {
  F32x16 acc[kRows][kVectors];
#pragma GCC unroll 4
  for (std::size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kVectors; ++i) acc[r][i] = load(c[r] + 16 * i);
  }
  for (std::size_t t = 0; t < depth; ++t) {
    F32x16 line[kVectors];
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kVectors; ++i) line[i] = b.line(t, first + i);
#pragma GCC unroll 4
    for (std::size_t r = 0; r < kRows; ++r) {
      const F32x16 factor = broadcast(a[r][t]);
#pragma GCC unroll 4
      for (std::size_t i = 0; i < kVectors; ++i) acc[r][i] = fma(factor, line[i], acc[r][i]);
    }
  }
#pragma GCC unroll 4
  for (std::size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kVectors; ++i) store(c[r] + 16 * i, acc[r][i]);
  }
}

// The same over `columns` (a multiple of 16) columns.
template <std::size_t kRows, typename Factor>
CICADA_INLINE void multiply_add_wide(const float* const (&a)[kRowBlock], std::size_t depth,
                                     Factor b, std::size_t columns, float* const (&c)[kRowBlock]) {
  std::size_t column = 0;
  float* at[kRowBlock];
  for (; column + 64 <= columns; column += 64) {
    for (std::size_t r = 0; r < kRows; ++r) at[r] = c[r] + column;
    multiply_add<kRows, 4>(a, depth, b, column / 16, at);
  }
  for (; column < columns; column += 16) {
    for (std::size_t r = 0; r < kRows; ++r) at[r] = c[r] + column;
    multiply_add<kRows, 1>(a, depth, b, column / 16, at);
  }
}

}  // namespace
}  // namespace cicada::kernels
