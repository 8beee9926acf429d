// Products of BF16 tiles with AMX, and the same in plain C++ where CICADA_EMULATED_TILES is
// defined: every test of the code around the instructions runs on machines that lack them.
//
// A tile of activations is 16 rows of 32 BF16; a tile of weights 16 pairs of columns of 16 rows, so
// that (p, r) holds columns 2p and 2p + 1 of row r; a tile of sums 16 rows of 16 float32. All are
// 1024 bytes that lie together.
// Numbers: to each sum the instruction adds, for a tile of 32 columns, (chain of fma over the even
//          columns ascending, from 0) + (the same over the odd ones); denormals count as 0.
// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, TDPBF16PS.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "cicada/kernels/activations.h"
#include "cicada/kernels/simd-inl.h"
#if !defined(CICADA_EMULATED_TILES)
#include "cicada/kernels/tile_unit-inl.h"
#endif
#include "cicada/tensor/half.h"

namespace cicada::kernels {
namespace {

inline constexpr std::size_t kTileColumns = kBf16TileColumns;
inline constexpr std::size_t kTileElements = kBf16TileElements;
inline constexpr std::size_t kTileSums = 256;  // float32 in a tile

// Sums of kRowTiles times kGroups tiles: c[i][j] = a[i] · b[j], or added to c[i][j]. Shapes: a[i]
// and b[j] point to `depth` tiles that lie one after the other.
template <std::size_t kRowTiles, std::size_t kGroups>
struct TileProduct {
  const std::uint16_t* a[kRowTiles];
  const std::uint16_t* b[kGroups];
  float* c[kRowTiles][kGroups];
  std::size_t depth = 0;
  bool adds = false;
};

#if defined(CICADA_EMULATED_TILES)

struct TileUnit {
  TileUnit() {}  // nothing to set up
};

// The even and the odd ones of 32 BF16.
inline F32x16 even_half(const std::uint16_t* p) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(p), 16))};
}
inline F32x16 odd_half(const std::uint16_t* p) {
  const __m512i mask = _mm512_set1_epi32(static_cast<int>(0xFFFF0000U));
  return {_mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(p), mask))};
}

// One tile of activations times one of weights, added to 16 rows of 16 sums; four rows at a time.
inline void multiply_tile(const std::uint16_t* a, const std::uint16_t* b, float* c) {
  constexpr std::size_t kRows = 4;
  for (std::size_t m = 0; m < 16; m += kRows) {
    F32x16 even[kRows] = {zero(), zero(), zero(), zero()};
    F32x16 odd[kRows] = {zero(), zero(), zero(), zero()};
    for (std::size_t p = 0; p < 16; ++p) {
      const F32x16 even_weights = even_half(b + 32 * p);
      const F32x16 odd_weights = odd_half(b + 32 * p);
#pragma GCC unroll 4
      for (std::size_t i = 0; i < kRows; ++i) {
        const std::uint16_t* x = a + 32 * (m + i) + 2 * p;
        even[i] = fma(broadcast(tensor::bf16_to_f32(x[0])), even_weights, even[i]);
        odd[i] = fma(broadcast(tensor::bf16_to_f32(x[1])), odd_weights, odd[i]);
      }
    }
    for (std::size_t i = 0; i < kRows; ++i) {
      float* row = c + 16 * (m + i);
      store(row, load(row) + (even[i] + odd[i]));
    }
  }
}

template <std::size_t kRowTiles, std::size_t kGroups>
void multiply(const TileProduct<kRowTiles, kGroups>& product) {
  for (std::size_t i = 0; i < kRowTiles; ++i) {
    for (std::size_t j = 0; j < kGroups; ++j) {
      float* c = product.c[i][j];
      if (!product.adds) __builtin_memset(c, 0, kTileSums * sizeof(float));
      for (std::size_t t = 0; t < product.depth; ++t) {
        multiply_tile(product.a[i] + t * kTileElements, product.b[j] + t * kTileElements, c);
      }
    }
  }
}

#else

// Tiles 0 … 3 hold sums (two of a row of tiles side by side), 4 and 5 activations, 6 and 7 weights:
// four products for four loads. The intrinsics do not say that they touch memory, hence the fences.
template <std::size_t kRowTiles, std::size_t kGroups>
CICADA_INLINE void multiply(const TileProduct<kRowTiles, kGroups>& product) {
  constexpr long kRowBytes = 64;
  __asm__ volatile("" : : : "memory");
  if (product.adds) {
    _tile_loadd(0, product.c[0][0], kRowBytes);
    if constexpr (kGroups == 2) _tile_loadd(1, product.c[0][1], kRowBytes);
    if constexpr (kRowTiles == 2) _tile_loadd(2, product.c[1][0], kRowBytes);
    if constexpr (kRowTiles == 2 && kGroups == 2) _tile_loadd(3, product.c[1][1], kRowBytes);
  } else {
    _tile_zero(0);
    if constexpr (kGroups == 2) _tile_zero(1);
    if constexpr (kRowTiles == 2) _tile_zero(2);
    if constexpr (kRowTiles == 2 && kGroups == 2) _tile_zero(3);
  }
  for (std::size_t at = 0; at < product.depth * kTileElements; at += kTileElements) {
    _tile_loadd(4, product.a[0] + at, kRowBytes);
    _tile_loadd(6, product.b[0] + at, kRowBytes);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kGroups == 2) {
      _tile_loadd(7, product.b[1] + at, kRowBytes);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (kRowTiles == 2) {
      _tile_loadd(5, product.a[1] + at, kRowBytes);
      _tile_dpbf16ps(2, 5, 6);
      if constexpr (kGroups == 2) _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, product.c[0][0], kRowBytes);
  if constexpr (kGroups == 2) _tile_stored(1, product.c[0][1], kRowBytes);
  if constexpr (kRowTiles == 2) _tile_stored(2, product.c[1][0], kRowBytes);
  if constexpr (kRowTiles == 2 && kGroups == 2) _tile_stored(3, product.c[1][1], kRowBytes);
  __asm__ volatile("" : : : "memory");
}

#endif

}  // namespace
}  // namespace cicada::kernels
