#include "cicada/kernels/matmul/pack.h"

#include <numeric>

#include "cicada/kernels/matmul/layout.h"
#include "cicada/kernels/test_support.h"
#include "cicada/tensor/dequantize.h"

namespace cicada::kernels {
namespace {

class Pack : public testing::TestWithParam<tensor::DTypeInfo> {};

// Unpacked rows against the file's own, bit for bit; a row order of every kind.
void expect_exact(tensor::DType dtype, std::size_t rows, std::size_t columns, bool is_reversed) {
  const auto file = random_rows(dtype, rows, columns, static_cast<std::uint32_t>(rows + columns));
  std::vector<std::uint32_t> order;
  if (is_reversed) {
    order.resize(rows);
    std::iota(order.rbegin(), order.rend(), 0U);
  }
  std::vector<std::byte> packed(packed_bytes(dtype, rows, columns));
  pack_groups(dtype, file, rows, columns, packed, order, 0, num_groups(rows));
  const std::size_t row_bytes = tensor::row_bytes(dtype, columns);
  std::vector<float> expected(columns);
  std::vector<float> got(columns);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t source = is_reversed ? order[row] : row;
    tensor::dequantize_row(dtype, std::span(file).subspan(source * row_bytes, row_bytes), expected);
    unpack_row(dtype, packed, row, got);
    ASSERT_EQ(std::memcmp(expected.data(), got.data(), columns * sizeof(float)), 0)
        << "row " << row << " of [" << rows << ", " << columns << "]";
  }
}

TEST_P(Pack, UnpackingGivesTheFilesRowsBitForBit) {
  const std::size_t block = GetParam().block_elements;
  const std::vector<std::size_t> widths =
      block == 1
          ? std::vector<std::size_t>{1, 5, 60, 576}
          : std::vector<std::size_t>{block, 3 * block, std::size_t{block == 32 ? 576U : 768U}};
  for (const std::size_t rows : {1U, 15U, 16U, 17U, 33U}) {
    for (const std::size_t columns : widths) {
      expect_exact(GetParam().dtype, rows, columns, false);
      expect_exact(GetParam().dtype, rows, columns, true);
    }
  }
}

TEST_P(Pack, GroupsPackedApartAreTheSameAsAtOnce) {
  const tensor::DType dtype = GetParam().dtype;
  const auto file = random_rows(dtype, 40, 256, 7);
  std::vector<std::byte> at_once(packed_bytes(dtype, 40, 256));
  std::vector<std::byte> apart(at_once.size());
  pack_groups(dtype, file, 40, 256, at_once, {}, 0, 3);
  pack_groups(dtype, file, 40, 256, apart, {}, 2, 3);
  pack_groups(dtype, file, 40, 256, apart, {}, 0, 2);
  EXPECT_EQ(at_once, apart);
}

TEST_P(Pack, TakesLittleMoreThanTheFile) {
  // The widest overhead is q2_k's and q3_k's: their scales are spread from bits to bytes.
  const tensor::DType dtype = GetParam().dtype;
  const double ratio = static_cast<double>(packed_bytes(dtype, 160, 1536)) /
                       static_cast<double>(160 * tensor::row_bytes(dtype, 1536));
  const bool is_two_or_three_bits = dtype == tensor::DType::kQ2_K || dtype == tensor::DType::kQ3_K;
  EXPECT_LE(ratio, is_two_or_three_bits ? 1.20 : 1.03);
}

INSTANTIATE_TEST_SUITE_P(pack, Pack, testing::ValuesIn(tensor::kDTypes),
                         [](const auto& p) { return std::string(p.param.name); });

}  // namespace
}  // namespace cicada::kernels
