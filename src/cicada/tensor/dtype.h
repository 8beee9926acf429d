// Element types and quantised block types of model files.
//
// A block type packs `block_elements` weights of one row into `block_bytes`. The layouts are
// described in docs/formats/gguf.md and defined bit by bit by tensor/dequantize.cc.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace cicada::tensor {

// Values are our own; gguf_type is the number in a GGUF file.
enum class DType : std::uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kIQ4_XS,
};

struct DTypeInfo {
  DType dtype;
  std::string_view name;    // as users write it, lower case: "q4_k"
  std::uint32_t gguf_type;  // number in GGUF's tensor table
  std::uint32_t block_elements;
  std::uint32_t block_bytes;
};

inline constexpr std::array<DTypeInfo, 15> kDTypes = {{
    {DType::kF32, "f32", 0, 1, 4},
    {DType::kF16, "f16", 1, 1, 2},
    {DType::kBF16, "bf16", 30, 1, 2},
    {DType::kQ4_0, "q4_0", 2, 32, 18},
    {DType::kQ4_1, "q4_1", 3, 32, 20},
    {DType::kQ5_0, "q5_0", 6, 32, 22},
    {DType::kQ5_1, "q5_1", 7, 32, 24},
    {DType::kQ8_0, "q8_0", 8, 32, 34},
    {DType::kQ2_K, "q2_k", 10, 256, 84},
    {DType::kQ3_K, "q3_k", 11, 256, 110},
    {DType::kQ4_K, "q4_k", 12, 256, 144},
    {DType::kQ5_K, "q5_k", 13, 256, 176},
    {DType::kQ6_K, "q6_k", 14, 256, 210},
    {DType::kIQ4_NL, "iq4_nl", 20, 32, 18},
    {DType::kIQ4_XS, "iq4_xs", 23, 256, 136},
}};

constexpr const DTypeInfo& info(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)]; }

constexpr std::string_view name(DType dtype) { return info(dtype).name; }

// Nothing when the type is not one of ours.
std::optional<DType> dtype_from_gguf(std::uint32_t gguf_type);
std::optional<DType> dtype_from_name(std::string_view name);

// The name GGUF gives a type number that we may not support ("iq2_xxs"); "type 99" is for the
// caller to write when nothing is known.
std::optional<std::string_view> gguf_type_name(std::uint32_t gguf_type);

// Bytes of a row of `elements`; elements must be whole blocks.
constexpr std::size_t row_bytes(DType dtype, std::size_t elements) {
  return elements / info(dtype).block_elements * info(dtype).block_bytes;
}

}  // namespace cicada::tensor
