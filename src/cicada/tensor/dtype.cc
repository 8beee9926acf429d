#include "cicada/tensor/dtype.h"

#include <utility>

namespace cicada::tensor {
namespace {

// Types that GGUF files may name and Cicada refuses by name.
constexpr std::array<std::pair<std::uint32_t, std::string_view>, 19> kForeignTypes = {{
    {9, "q8_1"},   {15, "q8_k"},  {16, "iq2_xxs"},  {17, "iq2_xs"}, {18, "iq3_xxs"},
    {19, "iq1_s"}, {21, "iq3_s"}, {22, "iq2_s"},    {24, "i8"},     {25, "i16"},
    {26, "i32"},   {27, "i64"},   {28, "f64"},      {29, "iq1_m"},  {34, "tq1_0"},
    {35, "tq2_0"}, {39, "mxfp4"}, {31, "q4_0_4_4"}, {40, "nvfp4"},
}};

}  // namespace

std::optional<DType> dtype_from_gguf(std::uint32_t gguf_type) {
  for (const DTypeInfo& entry : kDTypes) {
    if (entry.gguf_type == gguf_type) return entry.dtype;
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DTypeInfo& entry : kDTypes) {
    if (entry.name == name) return entry.dtype;
  }
  return std::nullopt;
}

std::optional<std::string_view> gguf_type_name(std::uint32_t gguf_type) {
  if (const auto dtype = dtype_from_gguf(gguf_type)) return info(*dtype).name;
  for (const auto& [number, type_name] : kForeignTypes) {
    if (number == gguf_type) return type_name;
  }
  return std::nullopt;
}

}  // namespace cicada::tensor
