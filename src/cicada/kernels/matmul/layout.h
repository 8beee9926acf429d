// The packed ("stream") layout of a weight matrix: the file's own integers, re-ordered so that one
// 64-byte load gives 4 consecutive weights of 16 rows.
//
// A matrix [n, k] is cut into groups of 16 rows; a last short group is filled up with zero rows. A
// group is a run of superblocks over k, each covering 32 or 256 columns:
//
//   header   float16 scales of the superblock, 16 rows each: d, then dmin (K-quants, iq4_xs)
//   scales   per block of 32 columns: 16 float16 d (and m), or 16 bytes a group of integer scales
//            (and minima)
//   pad      to `body_offset`, so that bodies of superblocks stay on cache lines
//   bodies   per block of 32 columns, in this order: nibbles (256 B), two-bit plane (128 B),
//   one-bit
//            plane (64 B), bytes (512 B), as far as the type has them
//
// "Step v" of a block is its columns 4v … 4v+3; in a 64-byte vector, byte 4r + j is row r, column
// 4v + j. Nibble vector p holds step 2p in the low and step 2p+1 in the high half of each byte;
// two-bit vector p holds steps 4p … 4p+3 from the low bits up; one-bit plane: 8 bytes a step, bit
// 4r + j. Quants are unsigned: value = scale * (q - offset) + min, or scale * table[q].
//
// Float types have no blocks: a group is [k][16] elements.
// Source: docs/formats/packed.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "cicada/tensor/dtype.h"

namespace cicada::kernels {

inline constexpr std::size_t kGroupRows = 16;
inline constexpr std::size_t kBlockColumns = 32;

struct PackedLayout {
  std::uint32_t blocks_per_super = 1;  // blocks of 32 columns in a superblock
  std::uint32_t header_bytes = 0;
  std::uint32_t scale_bytes = 0;  // per block
  std::uint32_t body_offset = 0;  // of the first body in the superblock
  bool nibbles = false;
  bool two_bits = false;
  bool one_bit = false;
  bool bytes = false;
  std::uint32_t groups = 1;       // scale groups in a block of 32 (2: one scale per 16 columns)
  std::uint32_t offset_log2 = 0;  // quants are stored + 2^offset_log2; 0: no offset
  bool has_min = false;
  bool is_signed_scale = false;  // integer scales are int8, not uint8
  bool uses_table = false;       // nibbles index the iq4 table (whose values are stored + 128)

  constexpr std::uint32_t body_bytes() const {
    return (nibbles ? 256U : 0U) + (two_bits ? 128U : 0U) + (one_bit ? 64U : 0U) +
           (bytes ? 512U : 0U);
  }
  constexpr std::uint32_t super_bytes() const {
    return body_offset + blocks_per_super * body_bytes();
  }
};

// The iq4 code book, plus 128 so that it is unsigned.
inline constexpr std::array<std::uint8_t, 16> kIq4Table = {1,   24,  45,  63,  79,  93,  106, 118,
                                                           129, 141, 153, 166, 181, 197, 217, 241};

constexpr PackedLayout packed_layout(tensor::DType dtype) {
  using tensor::DType;
  PackedLayout p;
  switch (dtype) {
    case DType::kQ4_0:
      p = {.scale_bytes = 32, .body_offset = 32, .nibbles = true, .offset_log2 = 3};
      break;
    case DType::kQ4_1:
      p = {.scale_bytes = 64, .body_offset = 64, .nibbles = true, .has_min = true};
      break;
    case DType::kQ5_0:
      p = {
          .scale_bytes = 32, .body_offset = 32, .nibbles = true, .one_bit = true, .offset_log2 = 4};
      break;
    case DType::kQ5_1:
      p = {.scale_bytes = 64, .body_offset = 64, .nibbles = true, .one_bit = true, .has_min = true};
      break;
    case DType::kQ8_0:
      p = {.scale_bytes = 32, .body_offset = 32, .bytes = true, .offset_log2 = 7};
      break;
    case DType::kIQ4_NL:
      p = {.scale_bytes = 32,
           .body_offset = 32,
           .nibbles = true,
           .offset_log2 = 7,
           .uses_table = true};
      break;
    case DType::kQ2_K:
      p = {.blocks_per_super = 8,
           .header_bytes = 64,
           .scale_bytes = 64,
           .body_offset = 576,
           .two_bits = true,
           .groups = 2,
           .has_min = true};
      break;
    case DType::kQ3_K:
      p = {.blocks_per_super = 8,
           .header_bytes = 32,
           .scale_bytes = 32,
           .body_offset = 320,
           .two_bits = true,
           .one_bit = true,
           .groups = 2,
           .offset_log2 = 2,
           .is_signed_scale = true};
      break;
    case DType::kQ4_K:
      p = {.blocks_per_super = 8,
           .header_bytes = 64,
           .scale_bytes = 32,
           .body_offset = 320,
           .nibbles = true,
           .has_min = true};
      break;
    case DType::kQ5_K:
      p = {.blocks_per_super = 8,
           .header_bytes = 64,
           .scale_bytes = 32,
           .body_offset = 320,
           .nibbles = true,
           .one_bit = true,
           .has_min = true};
      break;
    case DType::kQ6_K:
      p = {.blocks_per_super = 8,
           .header_bytes = 32,
           .scale_bytes = 32,
           .body_offset = 320,
           .nibbles = true,
           .two_bits = true,
           .groups = 2,
           .offset_log2 = 5,
           .is_signed_scale = true};
      break;
    case DType::kIQ4_XS:
      p = {.blocks_per_super = 8,
           .header_bytes = 32,
           .scale_bytes = 16,
           .body_offset = 192,
           .nibbles = true,
           .offset_log2 = 7,
           .is_signed_scale = true,
           .uses_table = true};
      break;
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
      break;
  }
  return p;
}

constexpr bool is_float(tensor::DType dtype) {
  return dtype == tensor::DType::kF32 || dtype == tensor::DType::kF16 ||
         dtype == tensor::DType::kBF16;
}

constexpr std::size_t num_groups(std::size_t rows) { return (rows + kGroupRows - 1) / kGroupRows; }

// Bytes of one group of 16 rows with `columns` columns (whole blocks of the type).
constexpr std::size_t packed_group_bytes(tensor::DType dtype, std::size_t columns) {
  if (is_float(dtype)) return columns * kGroupRows * tensor::info(dtype).block_bytes;
  const PackedLayout p = packed_layout(dtype);
  return columns / (kBlockColumns * p.blocks_per_super) * p.super_bytes();
}

constexpr std::size_t packed_bytes(tensor::DType dtype, std::size_t rows, std::size_t columns) {
  return num_groups(rows) * packed_group_bytes(dtype, columns);
}

}  // namespace cicada::kernels
