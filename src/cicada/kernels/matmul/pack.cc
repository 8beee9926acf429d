#include "cicada/kernels/matmul/pack.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "cicada/base/check.h"
#include "cicada/kernels/matmul/layout.h"
#include "cicada/tensor/half.h"

namespace cicada::kernels {
namespace {

using tensor::DType;

// One block of 32 columns of one row: unsigned quants, 4 to a word (word v: columns 4v … 4v+3, the
// first in the low byte), and its scales.
struct RowBlock {
  std::array<std::uint32_t, 8> words{};
  std::array<std::uint8_t, 2> scales{};  // integer scales, one or two groups (bit pattern of int8)
  std::array<std::uint8_t, 2> mins{};
  std::uint16_t d = 0;  // float16 bits; of the superblock for types with a header
  std::uint16_t m = 0;
};

constexpr std::uint32_t kOneBits = 0x01010101U;
constexpr std::uint32_t kTwoBits = 0x03030303U;
constexpr std::uint32_t kNibbles = 0x0F0F0F0FU;

template <typename T>
T read(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

std::uint8_t byte_at(const std::byte* p, std::size_t i) { return static_cast<std::uint8_t>(p[i]); }

// Four bits -> four bytes of 0 or 1, low bit first.
constexpr std::uint32_t spread_bits(std::uint32_t nibble) {
  return ((nibble & 15U) * 0x00204081U) & kOneBits;
}

// Four bytes of 0 or 1 -> four bits.
constexpr std::uint32_t gather_bits(std::uint32_t bytes) {
  return (bytes | bytes >> 7 | bytes >> 14 | bytes >> 21) & 15U;
}

// 16 bytes whose low halves are columns 0 … 15 and high halves 16 … 31.
void read_nibbles(const std::byte* p, RowBlock& block) {
  for (std::size_t v = 0; v < 4; ++v) {
    const auto word = read<std::uint32_t>(p + 4 * v);
    block.words[v] = word & kNibbles;
    block.words[v + 4] = (word >> 4) & kNibbles;
  }
}

void add_bit_plane(std::uint32_t bits, unsigned shift, RowBlock& block) {
  for (std::size_t v = 0; v < 8; ++v) block.words[v] |= spread_bits(bits >> (4 * v)) << shift;
}

// 6-bit scales and minima of q4_k and q5_k: 8 of each in 12 bytes.
void read_k_scales(const std::byte* p, std::size_t b, RowBlock& block) {
  if (b < 4) {
    block.scales[0] = byte_at(p, b) & 63U;
    block.mins[0] = byte_at(p, b + 4) & 63U;
    return;
  }
  const unsigned low = byte_at(p, b + 4);  // four bits of each
  const unsigned high_of_scale = byte_at(p, b - 4) >> 6;
  const unsigned high_of_min = byte_at(p, b) >> 6;
  block.scales[0] = static_cast<std::uint8_t>((low & 15U) | high_of_scale << 4U);
  block.mins[0] = static_cast<std::uint8_t>(low >> 4U | high_of_min << 4U);
}

// Nibbles of q4_k and q5_k: 32 bytes hold block 2i in the low and 2i+1 in the high halves.
void read_k_nibbles(const std::byte* p, std::size_t b, RowBlock& block) {
  const unsigned shift = b % 2 == 0 ? 0 : 4;
  for (std::size_t v = 0; v < 8; ++v) {
    block.words[v] = (read<std::uint32_t>(p + b / 2 * 32 + 4 * v) >> shift) & kNibbles;
  }
}

// Two-bit quants of q2_k and q3_k: 32 bytes hold four blocks, from the low bits up.
void read_k_two_bits(const std::byte* p, std::size_t b, RowBlock& block) {
  for (std::size_t v = 0; v < 8; ++v) {
    block.words[v] = (read<std::uint32_t>(p + b / 4 * 32 + 4 * v) >> (b % 4 * 2)) & kTwoBits;
  }
}

void read_q2_k(const std::byte* p, std::size_t b, RowBlock& block) {
  for (std::size_t g = 0; g < 2; ++g) {
    block.scales[g] = byte_at(p, 2 * b + g) & 15U;
    block.mins[g] = byte_at(p, 2 * b + g) >> 4;
  }
  read_k_two_bits(p + 16, b, block);
  block.d = read<std::uint16_t>(p + 80);
  block.m = read<std::uint16_t>(p + 82);
}

void read_q3_k(const std::byte* p, std::size_t b, RowBlock& block) {
  read_k_two_bits(p + 32, b, block);
  for (std::size_t v = 0; v < 8; ++v) {
    block.words[v] |= ((read<std::uint32_t>(p + 4 * v) >> b) & kOneBits) << 2;
  }
  // 16 6-bit scales in 12 bytes: low nibbles in the first 8, two high bits in the last 4.
  for (std::size_t g = 0; g < 2; ++g) {
    const std::size_t i = 2 * b + g;
    const unsigned low = i < 8 ? byte_at(p, 96 + i) & 15U : byte_at(p, 96 + i - 8) >> 4;
    const unsigned high = (byte_at(p, 104 + i % 4) >> (i / 4 * 2)) & 3U;
    block.scales[g] = static_cast<std::uint8_t>(static_cast<int>(low | high << 4) - 32);
  }
  block.d = read<std::uint16_t>(p + 108);
}

void read_q5_k(const std::byte* p, std::size_t b, RowBlock& block) {
  block.d = read<std::uint16_t>(p);
  block.m = read<std::uint16_t>(p + 2);
  read_k_scales(p + 4, b, block);
  read_k_nibbles(p + 48, b, block);
  for (std::size_t v = 0; v < 8; ++v) {
    block.words[v] |= ((read<std::uint32_t>(p + 16 + 4 * v) >> b) & kOneBits) << 4;
  }
}

// 128 columns: 64 bytes of nibbles (columns 0-63 low, 64-127 high), 32 bytes of two high bits.
void read_q6_k(const std::byte* p, std::size_t b, RowBlock& block) {
  const std::size_t half = b / 4;
  const std::size_t quarter = b % 4;
  const std::byte* low = p + half * 64 + quarter % 2 * 32;
  const std::byte* high = p + 128 + half * 32;
  for (std::size_t v = 0; v < 8; ++v) {
    const auto nibbles = read<std::uint32_t>(low + 4 * v) >> (quarter < 2 ? 0 : 4);
    const auto bits = read<std::uint32_t>(high + 4 * v) >> (2 * quarter);
    block.words[v] = (nibbles & kNibbles) | (bits & kTwoBits) << 4;
  }
  for (std::size_t g = 0; g < 2; ++g) block.scales[g] = byte_at(p, 192 + 2 * b + g);
  block.d = read<std::uint16_t>(p + 208);
}

void read_iq4_xs(const std::byte* p, std::size_t b, RowBlock& block) {
  block.d = read<std::uint16_t>(p);
  const unsigned high = (read<std::uint16_t>(p + 2) >> (2 * b)) & 3U;
  const unsigned low = (byte_at(p, 4 + b / 2) >> (b % 2 * 4)) & 15U;
  block.scales[0] = static_cast<std::uint8_t>(static_cast<int>(low | high << 4) - 32);
  read_nibbles(p + 8 + 16 * b, block);
}

// Block `b` of the file's block (or superblock) at p.
RowBlock read_block(DType dtype, const std::byte* p, std::size_t b) {
  RowBlock block;
  switch (dtype) {
    case DType::kQ4_0:
    case DType::kIQ4_NL:
      block.d = read<std::uint16_t>(p);
      read_nibbles(p + 2, block);
      break;
    case DType::kQ4_1:
      block.d = read<std::uint16_t>(p);
      block.m = read<std::uint16_t>(p + 2);
      read_nibbles(p + 4, block);
      break;
    case DType::kQ5_0:
      block.d = read<std::uint16_t>(p);
      read_nibbles(p + 6, block);
      add_bit_plane(read<std::uint32_t>(p + 2), 4, block);
      break;
    case DType::kQ5_1:
      block.d = read<std::uint16_t>(p);
      block.m = read<std::uint16_t>(p + 2);
      read_nibbles(p + 8, block);
      add_bit_plane(read<std::uint32_t>(p + 4), 4, block);
      break;
    case DType::kQ8_0:
      block.d = read<std::uint16_t>(p);
      for (std::size_t v = 0; v < 8; ++v) {
        block.words[v] = read<std::uint32_t>(p + 2 + 4 * v) ^ 0x80808080U;  // q + 128
      }
      break;
    case DType::kQ2_K:
      read_q2_k(p, b, block);
      break;
    case DType::kQ3_K:
      read_q3_k(p, b, block);
      break;
    case DType::kQ4_K:
      block.d = read<std::uint16_t>(p);
      block.m = read<std::uint16_t>(p + 2);
      read_k_scales(p + 4, b, block);
      read_k_nibbles(p + 16, b, block);
      break;
    case DType::kQ5_K:
      read_q5_k(p, b, block);
      break;
    case DType::kQ6_K:
      read_q6_k(p, b, block);
      break;
    case DType::kIQ4_XS:
      read_iq4_xs(p, b, block);
      break;
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
      break;
  }
  return block;
}

// Addresses inside one packed superblock.
struct SuperView {
  const PackedLayout& layout;
  std::byte* base;

  std::byte* scales(std::size_t b) const {
    return base + layout.header_bytes + b * layout.scale_bytes;
  }
  std::byte* body(std::size_t b) const {
    return base + layout.body_offset + b * layout.body_bytes();
  }
};

void write_scales(const SuperView& super, std::size_t b, std::size_t r, const RowBlock& block) {
  const PackedLayout& p = super.layout;
  std::byte* half_scales = p.header_bytes != 0 ? super.base : super.scales(b);
  std::memcpy(half_scales + 2 * r, &block.d, 2);
  if (p.has_min) std::memcpy(half_scales + 32 + 2 * r, &block.m, 2);
  if (p.header_bytes == 0) return;
  std::byte* at = super.scales(b) + r;
  for (std::size_t g = 0; g < p.groups; ++g, at += 16) *at = std::byte{block.scales[g]};
  if (!p.has_min) return;
  for (std::size_t g = 0; g < p.groups; ++g, at += 16) *at = std::byte{block.mins[g]};
}

void write_body(const SuperView& super, std::size_t b, std::size_t r, const RowBlock& block) {
  const PackedLayout& p = super.layout;
  std::byte* at = super.body(b);
  const auto put = [&](std::size_t vector, std::uint32_t word) {
    std::memcpy(at + 64 * vector + 4 * r, &word, 4);
  };
  unsigned high_shift = 0;
  if (p.nibbles) {
    for (std::size_t i = 0; i < 4; ++i) {
      put(i, (block.words[2 * i] & kNibbles) | (block.words[2 * i + 1] & kNibbles) << 4);
    }
    at += 256;
    high_shift = 4;
  }
  if (p.two_bits) {
    for (std::size_t i = 0; i < 2; ++i) {
      std::uint32_t word = 0;
      for (std::size_t j = 0; j < 4; ++j) {
        word |= ((block.words[4 * i + j] >> high_shift) & kTwoBits) << (2 * j);
      }
      put(i, word);
    }
    at += 128;
    high_shift += 2;
  }
  if (p.one_bit) {
    for (std::size_t v = 0; v < 8; ++v) {
      const std::uint32_t bits = gather_bits((block.words[v] >> high_shift) & kOneBits);
      std::byte& target = at[8 * v + r / 2];
      const unsigned shift = r % 2 * 4;
      target = (target & std::byte(0xF0U >> shift)) | std::byte(bits << shift);
    }
    at += 64;
  }
  if (p.bytes) {
    for (std::size_t v = 0; v < 8; ++v) put(v, block.words[v]);
  }
}

RowBlock read_packed(const SuperView& super, std::size_t b, std::size_t r) {
  const PackedLayout& p = super.layout;
  RowBlock block;
  const std::byte* half_scales = p.header_bytes != 0 ? super.base : super.scales(b);
  block.d = read<std::uint16_t>(half_scales + 2 * r);
  if (p.has_min) block.m = read<std::uint16_t>(half_scales + 32 + 2 * r);
  if (p.header_bytes != 0) {
    const std::byte* at = super.scales(b) + r;
    for (std::size_t g = 0; g < p.groups; ++g, at += 16) block.scales[g] = byte_at(at, 0);
    for (std::size_t g = 0; p.has_min && g < p.groups; ++g, at += 16) {
      block.mins[g] = byte_at(at, 0);
    }
  }
  const std::byte* at = super.body(b);
  unsigned high_shift = 0;
  if (p.nibbles) {
    for (std::size_t v = 0; v < 8; ++v) {
      const auto word = read<std::uint32_t>(at + 64 * (v / 2) + 4 * r);
      block.words[v] = (word >> (v % 2 * 4)) & kNibbles;
    }
    at += 256;
    high_shift = 4;
  }
  if (p.two_bits) {
    for (std::size_t v = 0; v < 8; ++v) {
      const auto word = read<std::uint32_t>(at + 64 * (v / 4) + 4 * r);
      block.words[v] |= ((word >> (v % 4 * 2)) & kTwoBits) << high_shift;
    }
    at += 128;
    high_shift += 2;
  }
  if (p.one_bit) {
    for (std::size_t v = 0; v < 8; ++v) {
      const unsigned bits = byte_at(at, 8 * v + r / 2) >> (r % 2 * 4);
      block.words[v] |= spread_bits(bits) << high_shift;
    }
    at += 64;
  }
  if (p.bytes) {
    for (std::size_t v = 0; v < 8; ++v) block.words[v] = read<std::uint32_t>(at + 64 * v + 4 * r);
  }
  return block;
}

// value = scale * (q - offset) + min, each product exact in float.
void decode(const PackedLayout& p, const RowBlock& block, std::span<float, kBlockColumns> out) {
  const float d = tensor::f16_to_f32(block.d);
  const float m = tensor::f16_to_f32(block.m);
  for (std::size_t i = 0; i < kBlockColumns; ++i) {
    const std::size_t g = p.groups == 2 ? i / 16 : 0;
    const std::uint8_t raw = block.scales[g];
    const int integer_scale = p.is_signed_scale ? static_cast<std::int8_t>(raw) : raw;
    const float scale = p.header_bytes != 0 ? d * static_cast<float>(integer_scale) : d;
    std::uint32_t q = (block.words[i / 4] >> (i % 4 * 8)) & 255U;
    if (p.uses_table) q = kIq4Table[q];
    const int value = static_cast<int>(q) - (p.offset_log2 != 0 ? 1 << p.offset_log2 : 0);
    out[i] = scale * static_cast<float>(value);
    if (!p.has_min) continue;
    out[i] += p.header_bytes != 0 ? -(m * static_cast<float>(block.mins[g])) : m;
  }
}

void pack_float_row(std::size_t element_bytes, const std::byte* row, std::size_t columns,
                    std::size_t r, std::byte* group) {
  for (std::size_t k = 0; k < columns; ++k) {
    std::memcpy(group + (k * kGroupRows + r) * element_bytes, row + k * element_bytes,
                element_bytes);
  }
}

void pack_block_row(DType dtype, const PackedLayout& layout, const std::byte* row,
                    std::size_t columns, std::size_t r, std::byte* group) {
  const std::size_t supers = columns / (kBlockColumns * layout.blocks_per_super);
  for (std::size_t s = 0; s < supers; ++s) {
    const SuperView super{layout, group + s * layout.super_bytes()};
    const std::byte* at = row + s * tensor::info(dtype).block_bytes;
    for (std::size_t b = 0; b < layout.blocks_per_super; ++b) {
      const RowBlock block = read_block(dtype, at, b);
      write_scales(super, b, r, block);
      write_body(super, b, r, block);
    }
  }
}

}  // namespace

void pack_groups(DType dtype, std::span<const std::byte> file, std::size_t rows,
                 std::size_t columns, std::span<std::byte> packed,
                 std::span<const std::uint32_t> row_order, std::size_t group_begin,
                 std::size_t group_end) {
  const std::size_t group_bytes = packed_group_bytes(dtype, columns);
  const std::size_t row_bytes = tensor::row_bytes(dtype, columns);
  CICADA_CHECK(file.size() == rows * row_bytes, "file bytes of a matrix");
  CICADA_CHECK(packed.size() == packed_bytes(dtype, rows, columns), "packed bytes of a matrix");
  CICADA_CHECK(row_order.empty() || row_order.size() == rows, "row order of a matrix");
  const PackedLayout layout = packed_layout(dtype);
  for (std::size_t group = group_begin; group < group_end; ++group) {
    std::byte* target = packed.data() + group * group_bytes;
    for (std::size_t r = 0; r < kGroupRows && group * kGroupRows + r < rows; ++r) {
      const std::size_t row = group * kGroupRows + r;
      const std::size_t file_row = row_order.empty() ? row : row_order[row];
      const std::byte* source = file.data() + file_row * row_bytes;
      if (is_float(dtype)) {
        pack_float_row(tensor::info(dtype).block_bytes, source, columns, r, target);
      } else {
        pack_block_row(dtype, layout, source, columns, r, target);
      }
    }
  }
}

void unpack_row(DType dtype, std::span<const std::byte> packed, std::size_t row,
                std::span<float> out) {
  const std::size_t group_bytes = packed_group_bytes(dtype, out.size());
  const std::size_t r = row % kGroupRows;
  CICADA_CHECK((row / kGroupRows + 1) * group_bytes <= packed.size(), "row of a packed matrix");
  const std::byte* group = packed.data() + row / kGroupRows * group_bytes;
  if (is_float(dtype)) {
    for (std::size_t k = 0; k < out.size(); ++k) {
      const std::size_t at = k * kGroupRows + r;
      if (dtype == DType::kF32) {
        out[k] = read<float>(group + 4 * at);
      } else {
        const auto bits = read<std::uint16_t>(group + 2 * at);
        out[k] = dtype == DType::kF16 ? tensor::f16_to_f32(bits) : tensor::bf16_to_f32(bits);
      }
    }
    return;
  }
  const PackedLayout layout = packed_layout(dtype);
  for (std::size_t k = 0; k < out.size(); k += kBlockColumns) {
    const std::size_t block = k / kBlockColumns;
    // The view only reads here.
    auto* base =
        const_cast<std::byte*>(group) + block / layout.blocks_per_super * layout.super_bytes();
    const RowBlock decoded =
        read_packed(SuperView{layout, base}, block % layout.blocks_per_super, r);
    decode(layout, decoded, out.subspan(k).first<kBlockColumns>());
  }
}

}  // namespace cicada::kernels
