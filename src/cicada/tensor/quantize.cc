#include "cicada/tensor/quantize.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "cicada/base/check.h"
#include "cicada/tensor/half.h"

// Source: docs/formats/gguf.md, "Block types" and "Quantising". Every step is float32 arithmetic in
// the order written: it decides the bytes.

namespace cicada::tensor {
namespace {

using Values = std::span<const float>;
using Out = std::span<std::byte>;

void put_u16(Out out, std::size_t at, std::uint16_t value) {
  out[at] = static_cast<std::byte>(value & 0xFF);
  out[at + 1] = static_cast<std::byte>(value >> 8);
}

void f16(Values values, Out out) { put_u16(out, 0, f32_to_f16(values[0])); }
void bf16(Values values, Out out) { put_u16(out, 0, f32_to_bf16(values[0])); }

// 1/d; 0 for a block of zeros, which therefore needs no special case. Scales under 2^-128 give
// infinity; the scale itself is then 0 in half precision, so whatever is stored means 0.
float inverse(float d) { return d == 0.0F ? 0.0F : 1.0F / d; }

// To the nearest integer, halves away from zero; 0 for NaN and what does not fit.
int round_away(float value) {
  if (!(std::fabs(value) < 1024.0F)) return 0;
  const float magnitude = std::fabs(value);
  const float floored = std::floor(magnitude);
  const float rounded = floored + std::floor(2.0F * (magnitude - floored));
  return static_cast<int>(std::copysign(rounded, value));
}

void q8_0(Values values, Out out) {
  float largest = 0.0F;
  for (const float value : values) {
    // A NaN stays: it spoils the scale, so that it is not lost silently.
    if (std::fabs(value) > largest || std::isnan(value)) largest = std::fabs(value);
    if (std::isnan(largest)) break;
  }
  const float d = largest / 127.0F;
  const float id = inverse(d);
  put_u16(out, 0, f32_to_f16(d));
  for (std::size_t i = 0; i < 32; ++i) {
    out[2 + i] = static_cast<std::byte>(round_away(values[i] * id) & 0xFF);
  }
}

// The number that becomes -8 is the one of largest magnitude (the first of equals), sign kept.
float q4_0_extreme(Values values) {
  float extreme = values[0];
  for (const float value : values) {
    if (std::isnan(extreme)) break;
    if (std::fabs(value) > std::fabs(extreme) || std::isnan(value)) extreme = value;
  }
  return extreme;
}

unsigned q4_0_code(float value, float id) {
  const float shifted = value * id + 8.5F;
  if (!(shifted >= 0.0F && shifted < 256.0F)) return 0;
  const unsigned code = static_cast<unsigned>(shifted);
  return code > 15 ? 15 : code;
}

void q4_0(Values values, Out out) {
  const float d = q4_0_extreme(values) / -8.0F;
  const float id = inverse(d);
  put_u16(out, 0, f32_to_f16(d));
  for (std::size_t i = 0; i < 16; ++i) {
    const unsigned low = q4_0_code(values[i], id);
    const unsigned high = q4_0_code(values[i + 16], id);
    out[2 + i] = static_cast<std::byte>(low | (high << 4));
  }
}

using Encode = void (*)(Values, Out);

Encode encoder(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return f16;
    case DType::kBF16:
      return bf16;
    case DType::kQ8_0:
      return q8_0;
    case DType::kQ4_0:
      return q4_0;
    default:
      return nullptr;
  }
}

}  // namespace

bool can_quantize(DType dtype) { return dtype == DType::kF32 || encoder(dtype) != nullptr; }

void quantize_row(DType dtype, std::span<const float> values, std::span<std::byte> out) {
  const DTypeInfo& type = info(dtype);
  CICADA_CHECK(can_quantize(dtype), "the type cannot be written");
  CICADA_CHECK(values.size() % type.block_elements == 0, "a row must be whole blocks");
  CICADA_CHECK(out.size() == row_bytes(dtype, values.size()), "bytes must be those of the row");
  if (dtype == DType::kF32) {
    if (!values.empty()) std::memcpy(out.data(), values.data(), out.size());
    return;
  }
  const Encode encode = encoder(dtype);
  for (std::size_t b = 0; b < values.size() / type.block_elements; ++b) {
    encode(values.subspan(b * type.block_elements, type.block_elements),
           out.subspan(b * type.block_bytes, type.block_bytes));
  }
}

}  // namespace cicada::tensor
