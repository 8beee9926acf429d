// Packed weights as tiles of BF16 (tiles-inl.h): each weight is what tensor::dequantize_row gives,
// rounded to nearest even.
#pragma once

#include "cicada/kernels/matmul/tiles-inl.h"
#include "cicada/kernels/matmul/unpack-inl.h"

namespace cicada::kernels {
namespace {

// Lane r: BF16 of even[r] in the low and of odd[r] in the high half.
CICADA_INLINE void store_pairs(F32x16 even, F32x16 odd, std::uint16_t* out) {
  alignas(64) static constexpr std::uint16_t kInterleave[32] = {
      0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
      8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  const __m512i rounded = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(odd.v, even.v));
  _mm512_storeu_si512(out, _mm512_permutexvar_epi16(_mm512_load_si512(kInterleave), rounded));
}

// Byte kByte of every lane.
template <int kByte>
CICADA_INLINE F32x16 byte_lanes(U8x64 a) {
  const __m512i moved = kByte == 0 ? a.v : _mm512_srli_epi32(a.v, 8 * kByte);
  return {_mm512_cvtepi32_ps(kByte == 3 ? moved : _mm512_and_si512(moved, _mm512_set1_epi32(255)))};
}

// One block of 32 columns of 16 rows. Shapes: out [512].
template <DType kType>
CICADA_INLINE void fill_block(const U8x64 (&q)[8], const BlockScales<kType>& scales,
                              std::uint16_t* out) {
  constexpr PackedLayout kLayout = packed_layout(kType);
  constexpr std::size_t kSteps = 8 / kLayout.groups;
#pragma GCC unroll 8
  for (std::size_t v = 0; v < 8; ++v) {
    const std::size_t g = v / kSteps;
    const F32x16 scale = scales.scale[g];
    F32x16 base = zero();
    if constexpr (kLayout.has_min) base = scales.minimum[g];
    // The offset is a power of two, so this is exact.
    if constexpr (kLayout.offset_log2 != 0) {
      base = scale * broadcast(-static_cast<float>(1 << kLayout.offset_log2));
    }
    store_pairs(fma(scale, byte_lanes<0>(q[v]), base), fma(scale, byte_lanes<1>(q[v]), base),
                out + 64 * v);
    store_pairs(fma(scale, byte_lanes<2>(q[v]), base), fma(scale, byte_lanes<3>(q[v]), base),
                out + 64 * v + 32);
  }
}

// Columns [first, first + count) of one group of 16 rows, both of whole superblocks. Shapes: out
// [count / 32 tiles].
template <DType kType>
void fill_panel_of_blocks(const std::uint8_t* group, std::size_t first, std::size_t count,
                          std::uint16_t* out) {
  constexpr PackedLayout kLayout = packed_layout(kType);
  constexpr std::size_t kColumns = kBlockColumns * kLayout.blocks_per_super;
  const std::uint8_t* w = group + first / kColumns * kLayout.super_bytes();
  for (std::size_t s = 0; s < count / kColumns; ++s, w += kLayout.super_bytes()) {
    const SuperScales<kType> super(w);
    for (std::size_t b = 0; b < kLayout.blocks_per_super; ++b, out += kTileElements) {
      U8x64 q[8];
      unpack_body<kType>(w + kLayout.body_offset + b * kLayout.body_bytes(), q);
      const BlockScales<kType> scales(w + kLayout.header_bytes + b * kLayout.scale_bytes, super);
      fill_block<kType>(q, scales, out);
    }
  }
}

// The same of weights that are BF16: columns in pairs, zeros up to whole tiles.
inline void fill_panel_of_bf16(const std::uint8_t* group, std::size_t first, std::size_t count,
                               std::uint16_t* out) {
  const auto* w = reinterpret_cast<const std::uint16_t*>(group) + first * kGroupRows;
  const auto column = [w](std::size_t k) {
    return _mm512_cvtepu16_epi32(
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w + k * kGroupRows)));
  };
  const std::size_t padded = (count + kTileColumns - 1) / kTileColumns * kTileColumns;
  for (std::size_t k = 0; k < padded; k += 2, out += 32) {
    __m512i pair = _mm512_setzero_si512();
    if (k < count) pair = column(k);
    if (k + 1 < count) pair = _mm512_or_si512(pair, _mm512_slli_epi32(column(k + 1), 16));
    _mm512_storeu_si512(out, pair);
  }
}

using FillFunction = void (*)(const std::uint8_t* group, std::size_t first, std::size_t count,
                              std::uint16_t* out);

// None for float types wider than BF16: their products stay in float32.
inline FillFunction fill_function(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return fill_panel_of_bf16;
    case DType::kQ4_0:
      return fill_panel_of_blocks<DType::kQ4_0>;
    case DType::kQ4_1:
      return fill_panel_of_blocks<DType::kQ4_1>;
    case DType::kQ5_0:
      return fill_panel_of_blocks<DType::kQ5_0>;
    case DType::kQ5_1:
      return fill_panel_of_blocks<DType::kQ5_1>;
    case DType::kQ8_0:
      return fill_panel_of_blocks<DType::kQ8_0>;
    case DType::kQ2_K:
      return fill_panel_of_blocks<DType::kQ2_K>;
    case DType::kQ3_K:
      return fill_panel_of_blocks<DType::kQ3_K>;
    case DType::kQ4_K:
      return fill_panel_of_blocks<DType::kQ4_K>;
    case DType::kQ5_K:
      return fill_panel_of_blocks<DType::kQ5_K>;
    case DType::kQ6_K:
      return fill_panel_of_blocks<DType::kQ6_K>;
    case DType::kIQ4_NL:
      return fill_panel_of_blocks<DType::kIQ4_NL>;
    case DType::kIQ4_XS:
      return fill_panel_of_blocks<DType::kIQ4_XS>;
    case DType::kF32:
    case DType::kF16:
      break;
  }
  return nullptr;
}

}  // namespace
}  // namespace cicada::kernels
