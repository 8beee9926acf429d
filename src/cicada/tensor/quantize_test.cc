#include "cicada/tensor/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "cicada/platform/file.h"
#include "cicada/tensor/dequantize.h"

namespace cicada::tensor {
namespace {

std::vector<std::byte> quantize(DType dtype, const std::vector<float>& values) {
  std::vector<std::byte> out(row_bytes(dtype, values.size()));
  quantize_row(dtype, values, out);
  return out;
}

std::vector<float> round_trip(DType dtype, const std::vector<float>& values) {
  std::vector<float> out(values.size());
  dequantize_row(dtype, quantize(dtype, values), out);
  return out;
}

// testdata/quantize_golden.bin; layout and source in make_quantize_golden.py.
TEST(Quantize, EveryTypeGivesTheBytesOfTheReference) {
  const auto file = platform::MappedFile::open(CICADA_TESTDATA_DIR "/quantize_golden.bin");
  ASSERT_TRUE(file);
  std::span<const std::byte> rest = file->bytes();
  const auto next_u32 = [&rest] {
    std::uint32_t value = 0;
    std::memcpy(&value, rest.data(), sizeof(value));
    rest = rest.subspan(sizeof(value));
    return value;
  };
  std::vector<float> values(next_u32());
  std::memcpy(values.data(), rest.data(), values.size() * sizeof(float));
  rest = rest.subspan(values.size() * sizeof(float));
  int num_types = 0;
  for (; !rest.empty(); ++num_types) {
    const DType dtype = dtype_from_gguf(next_u32()).value();
    const std::size_t size = next_u32();
    const std::vector<std::byte> ours = quantize(dtype, values);
    ASSERT_EQ(ours.size(), size);
    for (std::size_t i = 0; i < size; ++i) {
      ASSERT_EQ(ours[i], rest[i]) << name(dtype) << " byte " << i << ", block "
                                  << i / info(dtype).block_bytes;
    }
    rest = rest.subspan(size);
  }
  EXPECT_EQ(num_types, 4);
}

TEST(Quantize, F32IsUnchanged) {
  const std::vector<float> values = {0.1F, -0.0F, 1e-45F, std::numeric_limits<float>::infinity()};
  const auto back = round_trip(DType::kF32, values);
  EXPECT_EQ(std::memcmp(back.data(), values.data(), values.size() * sizeof(float)), 0);
}

TEST(Quantize, ZerosStayExactlyZero) {
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0}) {
    for (const float value : round_trip(dtype, std::vector<float>(64))) EXPECT_EQ(value, 0.0F);
  }
}

TEST(Quantize, ErrorIsAtMostHalfAStep) {
  std::vector<float> values(256);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(static_cast<float>(i * i));  // at most 1
  }
  // Half a step of the largest value's scale, and the scale's own rounding to half precision.
  const auto worst = [&values](DType dtype) {
    const auto back = round_trip(dtype, values);
    float error = 0.0F;
    for (std::size_t i = 0; i < values.size(); ++i) {
      error = std::max(error, std::fabs(back[i] - values[i]));
    }
    return error;
  };
  EXPECT_LE(worst(DType::kF16), 0x1p-12F);
  EXPECT_LE(worst(DType::kBF16), 0x1p-9F);
  EXPECT_LE(worst(DType::kQ8_0), 0.5F / 127.0F + 0x1p-11F);
  EXPECT_LE(worst(DType::kQ4_0), 1.0F / 8.0F + 0x1p-11F);  // +8 does not exist: a whole step
}

TEST(Quantize, NanSpoilsItsBlockOnly) {
  for (const DType dtype : {DType::kQ8_0, DType::kQ4_0}) {
    std::vector<float> values(64, 1.0F);
    values[5] = std::nanf("");
    const auto back = round_trip(dtype, values);
    EXPECT_TRUE(std::isnan(back[5])) << name(dtype);
    EXPECT_FALSE(std::isnan(back[40])) << name(dtype);
  }
}

TEST(Quantize, WhatCanBeWritten) {
  for (const DTypeInfo& type : kDTypes) {
    const bool expected = type.name == "f32" || type.name == "f16" || type.name == "bf16" ||
                          type.name == "q8_0" || type.name == "q4_0";
    EXPECT_EQ(can_quantize(type.dtype), expected) << type.name;
  }
}

}  // namespace
}  // namespace cicada::tensor
