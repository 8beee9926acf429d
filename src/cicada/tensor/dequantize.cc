#include "cicada/tensor/dequantize.h"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "cicada/base/check.h"
#include "cicada/tensor/half.h"

// Source: docs/formats/gguf.md, "Block types". The order of operations in every expression is part
// of the definition: it gives the same bits as the `gguf` Python package.

namespace cicada::tensor {
namespace {

using Block = std::span<const std::uint8_t>;
using Out = std::span<float>;

std::uint16_t u16_at(Block block, std::size_t at) {
  return static_cast<std::uint16_t>(block[at] | (block[at + 1] << 8));
}

std::uint32_t u32_at(Block block, std::size_t at) {
  return static_cast<std::uint32_t>(u16_at(block, at)) |
         (static_cast<std::uint32_t>(u16_at(block, at + 2)) << 16);
}

float half_at(Block block, std::size_t at) { return f16_to_f32(u16_at(block, at)); }

// Bits [shift, shift + width) of a byte.
int bits(std::uint8_t byte, std::size_t shift, int width) {
  return (byte >> shift) & ((1 << width) - 1);
}

// The 16 values of IQ4_NL and IQ4_XS.
constexpr std::array<int, 16> kNonLinear = {-127, -104, -83, -65, -49, -35, -22, -10,
                                            1,    13,   25,  38,  53,  69,  89,  113};

void f32(Block block, Out out) { out[0] = std::bit_cast<float>(u32_at(block, 0)); }
void f16(Block block, Out out) { out[0] = half_at(block, 0); }
void bf16(Block block, Out out) { out[0] = bf16_to_f32(u16_at(block, 0)); }

// Blocks of 32 with nibbles: byte i holds element i (low) and element i + 16 (high).
int nibble(Block nibbles, std::size_t i) { return bits(nibbles[i % 16], i / 16 * 4, 4); }

void q4_0(Block block, Out out) {
  const float d = half_at(block, 0);
  const Block qs = block.subspan(2);
  for (std::size_t i = 0; i < 32; ++i) out[i] = d * static_cast<float>(nibble(qs, i) - 8);
}

void q4_1(Block block, Out out) {
  const float d = half_at(block, 0);
  const float m = half_at(block, 2);
  const Block qs = block.subspan(4);
  for (std::size_t i = 0; i < 32; ++i) out[i] = d * static_cast<float>(nibble(qs, i)) + m;
}

// The fifth bit of element i is bit i of a 32-bit word.
int five_bits(Block nibbles, std::uint32_t high, std::size_t i) {
  return nibble(nibbles, i) | static_cast<int>((high >> i & 1U) << 4);
}

void q5_0(Block block, Out out) {
  const float d = half_at(block, 0);
  const std::uint32_t high = u32_at(block, 2);
  const Block qs = block.subspan(6);
  for (std::size_t i = 0; i < 32; ++i) out[i] = d * static_cast<float>(five_bits(qs, high, i) - 16);
}

void q5_1(Block block, Out out) {
  const float d = half_at(block, 0);
  const float m = half_at(block, 2);
  const std::uint32_t high = u32_at(block, 4);
  const Block qs = block.subspan(8);
  for (std::size_t i = 0; i < 32; ++i) out[i] = d * static_cast<float>(five_bits(qs, high, i)) + m;
}

void q8_0(Block block, Out out) {
  const float d = half_at(block, 0);
  for (std::size_t i = 0; i < 32; ++i) {
    out[i] = d * static_cast<float>(static_cast<std::int8_t>(block[2 + i]));
  }
}

// Super-blocks of 256: element e is the i-th of group g, where g = e / 32 and i = e % 32.

// Two bits of element (g, i): four groups share 32 bytes, the first in the lowest bits.
int two_bits(Block qs, std::size_t g, std::size_t i) {
  return bits(qs[g / 4 * 32 + i], g % 4 * 2, 2);
}

// Four bits of element (g, i) of Q4_K and Q5_K: two groups share 32 bytes.
int four_bits(Block qs, std::size_t g, std::size_t i) {
  return bits(qs[g / 2 * 32 + i], g % 2 * 4, 4);
}

// Layout: scales [16] (low nibble scale, high nibble minimum, per 16 elements), qs [64], d, dmin.
void q2_k(Block block, Out out) {
  const Block qs = block.subspan(16);
  const float d = half_at(block, 80);
  const float dmin = half_at(block, 82);
  for (std::size_t e = 0; e < 256; ++e) {
    const std::uint8_t packed = block[e / 16];
    const float scale = d * static_cast<float>(packed & 15);
    const float minimum = dmin * static_cast<float>(packed >> 4);
    out[e] = scale * static_cast<float>(two_bits(qs, e / 32, e % 32)) - minimum;
  }
}

// The 6-bit scale s of 16: low nibbles in bytes 0..7, pairs of high bits in bytes 8..11; less 32.
int q3_k_scale(Block scales, std::size_t s) {
  const int low = bits(scales[s % 8], s / 8 * 4, 4);
  const int high = bits(scales[8 + s % 4], s / 4 * 2, 2);
  return (low | (high << 4)) - 32;
}

// Layout: hmask [32], qs [64], scales [12], d. The third bit of group g is bit g of hmask[i]; a
// cleared bit means minus 4.
void q3_k(Block block, Out out) {
  const Block qs = block.subspan(32);
  const Block scales = block.subspan(96);
  const float d = half_at(block, 108);
  for (std::size_t e = 0; e < 256; ++e) {
    const std::size_t g = e / 32;
    const std::size_t i = e % 32;
    const int q = two_bits(qs, g, i) - (bits(block[i], g, 1) != 0 ? 0 : 4);
    const float scale = d * static_cast<float>(q3_k_scale(scales, e / 16));
    out[e] = scale * static_cast<float>(q);
  }
}

struct ScaleMin {
  int scale;
  int minimum;
};

// The 6-bit scale and minimum of group g of 8, packed in 12 bytes (Q4_K and Q5_K).
ScaleMin scale_min(Block packed, std::size_t g) {
  if (g < 4) return {packed[g] & 63, packed[g + 4] & 63};
  return {(packed[g + 4] & 15) | (packed[g - 4] >> 6 << 4),
          (packed[g + 4] >> 4) | (packed[g] >> 6 << 4)};
}

// Layout: d, dmin, scales [12], qs [128].
void q4_k(Block block, Out out) {
  const float d = half_at(block, 0);
  const float dmin = half_at(block, 2);
  const Block qs = block.subspan(16);
  for (std::size_t g = 0; g < 8; ++g) {
    const ScaleMin packed = scale_min(block.subspan(4, 12), g);
    const float scale = d * static_cast<float>(packed.scale);
    const float minimum = dmin * static_cast<float>(packed.minimum);
    for (std::size_t i = 0; i < 32; ++i) {
      out[g * 32 + i] = scale * static_cast<float>(four_bits(qs, g, i)) - minimum;
    }
  }
}

// Layout: d, dmin, scales [12], qh [32] (bit g of qh[i] is the fifth bit), qs [128].
void q5_k(Block block, Out out) {
  const float d = half_at(block, 0);
  const float dmin = half_at(block, 2);
  const Block qh = block.subspan(16);
  const Block qs = block.subspan(48);
  for (std::size_t g = 0; g < 8; ++g) {
    const ScaleMin packed = scale_min(block.subspan(4, 12), g);
    const float scale = d * static_cast<float>(packed.scale);
    const float minimum = dmin * static_cast<float>(packed.minimum);
    for (std::size_t i = 0; i < 32; ++i) {
      const int q = four_bits(qs, g, i) | (bits(qh[i], g, 1) << 4);
      out[g * 32 + i] = scale * static_cast<float>(q) - minimum;
    }
  }
}

// Layout: ql [128], qh [64], scales [16] (signed, per 16 elements), d. Low nibbles: 64 bytes hold
// four groups, the first two in the low halves; high bits as two_bits().
void q6_k(Block block, Out out) {
  const Block qh = block.subspan(128);
  const Block scales = block.subspan(192);
  const float d = half_at(block, 208);
  for (std::size_t e = 0; e < 256; ++e) {
    const std::size_t g = e / 32;
    const std::size_t i = e % 32;
    const int low = bits(block[g / 4 * 64 + g % 2 * 32 + i], g % 4 / 2 * 4, 4);
    const int q = (low | (two_bits(qh, g, i) << 4)) - 32;
    const float scale = d * static_cast<float>(static_cast<std::int8_t>(scales[e / 16]));
    out[e] = scale * static_cast<float>(q);
  }
}

void iq4_nl(Block block, Out out) {
  const float d = half_at(block, 0);
  const Block qs = block.subspan(2);
  for (std::size_t i = 0; i < 32; ++i) {
    out[i] = d * static_cast<float>(kNonLinear[static_cast<std::size_t>(nibble(qs, i))]);
  }
}

// Layout: d, scales_h (u16, two bits a group), scales_l [4] (a nibble a group), qs [128] (16 bytes
// a group).
void iq4_xs(Block block, Out out) {
  const float d = half_at(block, 0);
  const unsigned scales_high = u16_at(block, 2);
  for (std::size_t g = 0; g < 8; ++g) {
    const int low = bits(block[4 + g / 2], g % 2 * 4, 4);
    const int high = static_cast<int>(scales_high >> (2 * g) & 3U);
    const float scale = d * static_cast<float>((low | (high << 4)) - 32);
    const Block qs = block.subspan(8 + g * 16, 16);
    for (std::size_t i = 0; i < 32; ++i) {
      const int value = kNonLinear[static_cast<std::size_t>(nibble(qs, i))];
      out[g * 32 + i] = scale * static_cast<float>(value);
    }
  }
}

using Decode = void (*)(Block, Out);

// In the order of DType.
constexpr std::array<Decode, kDTypes.size()> kDecoders = {
    f32, f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0, q2_k, q3_k, q4_k, q5_k, q6_k, iq4_nl, iq4_xs};

}  // namespace

void dequantize_row(DType dtype, std::span<const std::byte> bytes, std::span<float> out) {
  const DTypeInfo& type = info(dtype);
  CICADA_CHECK(out.size() % type.block_elements == 0, "a row must be whole blocks");
  CICADA_CHECK(bytes.size() == row_bytes(dtype, out.size()), "bytes must be those of the row");
  if (dtype == DType::kF32) {  // a little-endian machine's own layout
    if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
    return;
  }
  const Block all(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  const Decode decode = kDecoders[static_cast<std::size_t>(dtype)];
  const std::size_t num_blocks = out.size() / type.block_elements;
  for (std::size_t b = 0; b < num_blocks; ++b) {
    decode(all.subspan(b * type.block_bytes, type.block_bytes),
           out.subspan(b * type.block_elements, type.block_elements));
  }
}

}  // namespace cicada::tensor
