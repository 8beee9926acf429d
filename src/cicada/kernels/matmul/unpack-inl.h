// Packed weights (layout.h) into registers: the integers of a block of 32 columns, their scales,
// and weights that are floats.
#pragma once

#include "cicada/kernels/matmul/layout.h"
#include "cicada/kernels/simd-inl.h"

namespace cicada::kernels {
namespace {

using tensor::DType;

// Steps kFirst … kFirst + 3 from a vector of two-bit quants: their low bits, or above others.
template <std::size_t kFirst, int kShift, bool kIsAbove>
CICADA_INLINE void add_two_bits(U8x64 plane, U8x64 (&q)[8]) {
  if constexpr (kIsAbove) {
    q[kFirst] = or_two_bits<0, kShift>(q[kFirst], plane);
    q[kFirst + 1] = or_two_bits<2, kShift>(q[kFirst + 1], plane);
    q[kFirst + 2] = or_two_bits<4, kShift>(q[kFirst + 2], plane);
    q[kFirst + 3] = or_two_bits<6, kShift>(q[kFirst + 3], plane);
  } else {
    q[kFirst] = two_bits<0>(plane);
    q[kFirst + 1] = two_bits<2>(plane);
    q[kFirst + 2] = two_bits<4>(plane);
    q[kFirst + 3] = two_bits<6>(plane);
  }
}

// The eight steps of a block as unsigned bytes.
template <DType kType>
CICADA_INLINE void unpack_body(const std::uint8_t* p, U8x64 (&q)[8]) {
  constexpr PackedLayout kLayout = packed_layout(kType);
  if constexpr (kLayout.bytes) {
#pragma GCC unroll 8
    for (std::size_t v = 0; v < 8; ++v) q[v] = load_bytes(p + 64 * v);
    return;
  }
  constexpr std::size_t kTwoBitsAt = kLayout.nibbles ? 256 : 0;
  constexpr std::size_t kOneBitAt = kTwoBitsAt + (kLayout.two_bits ? 128 : 0);
  constexpr int kHighShift = kLayout.nibbles ? 4 : 0;
  if constexpr (kLayout.nibbles) {
#pragma GCC unroll 4
    for (std::size_t i = 0; i < 4; ++i) {
      const U8x64 pair = load_bytes(p + 64 * i);
      q[2 * i] = nibble<0>(pair);
      q[2 * i + 1] = nibble<4>(pair);
    }
  }
  if constexpr (kLayout.two_bits) {
    add_two_bits<0, kHighShift, kLayout.nibbles>(load_bytes(p + kTwoBitsAt), q);
    add_two_bits<4, kHighShift, kLayout.nibbles>(load_bytes(p + kTwoBitsAt + 64), q);
  }
  if constexpr (kLayout.one_bit) {
    constexpr char kBit = static_cast<char>(1 << (kHighShift + (kLayout.two_bits ? 2 : 0)));
#pragma GCC unroll 8
    for (std::size_t v = 0; v < 8; ++v) {
      q[v] = add_where(q[v], p + kOneBitAt + 8 * v, kBit);
    }
  }
  if constexpr (kLayout.uses_table) {
#pragma GCC unroll 8
    for (std::size_t v = 0; v < 8; ++v) q[v] = lookup(kIq4Table.data(), q[v]);
  }
}

// What the scales and minima of a superblock's blocks are multiples of, 16 rows each; zeros where
// blocks have their own.
template <DType kType>
struct SuperScales {
  F32x16 d = zero();
  F32x16 dmin = zero();

  CICADA_INLINE explicit SuperScales(const std::uint8_t* super) {
    constexpr PackedLayout kLayout = packed_layout(kType);
    if constexpr (kLayout.header_bytes != 0) {
      d = load_f16(reinterpret_cast<const std::uint16_t*>(super));
      if constexpr (kLayout.has_min) {
        dmin = load_f16(reinterpret_cast<const std::uint16_t*>(super + 32));
      }
    }
  }
};

// Scales and minima of one block, 16 rows each; a minimum is what is added to scale * q.
template <DType kType>
struct BlockScales {
  static constexpr PackedLayout kLayout = packed_layout(kType);
  F32x16 scale[kLayout.groups];
  F32x16 minimum[kLayout.groups];

  CICADA_INLINE BlockScales(const std::uint8_t* p, const SuperScales<kType>& super) {
    if constexpr (kLayout.header_bytes == 0) {
      scale[0] = load_f16(reinterpret_cast<const std::uint16_t*>(p));
      if constexpr (kLayout.has_min) {
        minimum[0] = load_f16(reinterpret_cast<const std::uint16_t*>(p + 32));
      }
    } else {
#pragma GCC unroll 2
      for (std::size_t g = 0; g < kLayout.groups; ++g) {
        const std::uint8_t* at = p + 16 * g;
        scale[g] = super.d * (kLayout.is_signed_scale ? load_i8(at) : load_u8(at));
        if constexpr (kLayout.has_min) {
          minimum[g] = zero() - super.dmin * load_u8(at + 16 * kLayout.groups);
        }
      }
    }
  }
};

template <DType kType>
CICADA_INLINE F32x16 load_weights(const std::uint8_t* p) {
  if constexpr (kType == DType::kF32) {
    return load(reinterpret_cast<const float*>(p));
  } else if constexpr (kType == DType::kF16) {
    return load_f16(reinterpret_cast<const std::uint16_t*>(p));
  } else {
    return load_bf16(reinterpret_cast<const std::uint16_t*>(p));
  }
}

}  // namespace
}  // namespace cicada::kernels
