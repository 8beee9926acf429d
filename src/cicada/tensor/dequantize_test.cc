#include "cicada/tensor/dequantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "cicada/platform/file.h"

namespace cicada::tensor {
namespace {

struct Golden {
  DType dtype;
  std::vector<std::byte> bytes;
  std::vector<float> values;
};

// testdata/dequantize_golden.bin; layout and source in make_dequantize_golden.py.
std::vector<Golden> read_golden() {
  const auto file = platform::MappedFile::open(CICADA_TESTDATA_DIR "/dequantize_golden.bin");
  std::vector<Golden> all;
  if (!file) return all;
  std::span<const std::byte> rest = file->bytes();
  while (!rest.empty()) {
    std::uint32_t header[3];
    std::memcpy(header, rest.data(), sizeof(header));
    rest = rest.subspan(sizeof(header));
    Golden golden;
    golden.dtype = dtype_from_gguf(header[0]).value();
    golden.bytes.assign(rest.begin(), rest.begin() + header[1]);
    golden.values.resize(header[2]);
    std::memcpy(golden.values.data(), rest.data() + header[1], header[2] * sizeof(float));
    rest = rest.subspan(header[1] + header[2] * sizeof(float));
    all.push_back(std::move(golden));
  }
  return all;
}

TEST(Dequantize, GoldenFileHoldsEveryType) {
  const auto all = read_golden();
  ASSERT_EQ(all.size(), kDTypes.size());
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].dtype, kDTypes[i].dtype);
}

TEST(Dequantize, EveryTypeGivesTheBitsOfTheReference) {
  for (const Golden& golden : read_golden()) {
    SCOPED_TRACE(std::string(name(golden.dtype)));
    std::vector<float> out(golden.values.size(), -1.0F);
    dequantize_row(golden.dtype, golden.bytes, out);
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (std::isnan(golden.values[i])) {
        EXPECT_TRUE(std::isnan(out[i])) << i;  // which NaN is not part of the format
      } else {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(out[i]),
                  std::bit_cast<std::uint32_t>(golden.values[i]))
            << i;
      }
    }
  }
}

TEST(Dequantize, ZeroBytesGiveZeroInEveryType) {
  for (const DTypeInfo& type : kDTypes) {
    const std::vector<std::byte> bytes(type.block_bytes * std::size_t{2});
    std::vector<float> out(type.block_elements * std::size_t{2}, 1.0F);
    dequantize_row(type.dtype, bytes, out);
    for (const float value : out) EXPECT_EQ(value, 0.0F) << type.name;
  }
}

TEST(Dequantize, EmptyRowIsNothing) {
  dequantize_row(DType::kF32, {}, {});
  dequantize_row(DType::kQ4_K, {}, {});
}

TEST(DequantizeDeathTest, PartOfABlockIsABrokenInvariant) {
  std::vector<std::byte> bytes(18);
  std::vector<float> out(31);
  EXPECT_DEATH(dequantize_row(DType::kQ4_0, bytes, out), "whole blocks");
}

}  // namespace
}  // namespace cicada::tensor
