#include "cicada/cli/inspect_deep.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cicada/formats/gguf_test_builder.h"

namespace cicada::cli {
namespace {

using formats::GgufBuilder;

const StudyProgress kSilent = [](std::string_view, double) { return true; };

std::vector<TensorStudy> study(const GgufBuilder& builder) {
  const auto file = formats::open_bytes(builder.build());
  EXPECT_TRUE(file) << file.error().to_string();
  auto studies = study_tensors(*file, kSilent);
  EXPECT_TRUE(studies);
  return *std::move(studies);
}

// [rows, columns] of rank 2: 1 + r * c.
std::vector<float> rank_two(std::size_t rows, std::size_t columns) {
  std::vector<float> values;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) values.push_back(static_cast<float>(1 + r * c));
  }
  return values;
}

TEST(InspectDeep, CountsZerosOfEitherSignAndTheNorm) {
  const auto studies = study(GgufBuilder().tensor_f32("a", {4}, {0.0F, -0.0F, 3.0F, -4.0F}));
  EXPECT_EQ(studies[0].zeros, 2U);
  EXPECT_DOUBLE_EQ(studies[0].norm, 5.0);
  EXPECT_EQ(studies[0].rank, 1U);
}

TEST(InspectDeep, RanksTallAndWideMatricesAlike) {
  // Sides that are whole groups of nothing; 300 columns are more than one strip.
  const auto studies = study(GgufBuilder()
                                 .tensor_f32("tall", {7, 300}, rank_two(300, 7))
                                 .tensor_f32("wide", {300, 7}, rank_two(7, 300)));
  EXPECT_EQ(studies[0].rank, 2U);
  EXPECT_EQ(studies[1].rank, 2U);
}

TEST(InspectDeep, ReadsBlocksOfQuantisedRows) {
  // Two rows of one q8_0 block: scale 1 (float16), then 32 integers.
  std::string row("\x00\x3c", 2);
  for (char i = 0; i < 32; ++i) row += i;
  const auto studies = study(GgufBuilder().tensor("q", {32, 2}, 8, row + row));
  EXPECT_EQ(studies[0].zeros, 2U);
  EXPECT_EQ(studies[0].rank, 1U);
  EXPECT_DOUBLE_EQ(studies[0].norm, std::sqrt(2.0 * 31 * 32 * 63 / 6));
}

TEST(InspectDeep, AZeroMatrixHasRankZero) {
  const auto studies = study(GgufBuilder().tensor_f32("z", {8, 8}, std::vector<float>(64)));
  EXPECT_EQ(studies[0].zeros, 64U);
  EXPECT_EQ(studies[0].rank, 0U);
}

TEST(InspectDeep, SaysWhyThereIsNoRank) {
  const auto studies =
      study(GgufBuilder()
                .tensor_f32("nan", {2, 1}, {1.0F, std::numeric_limits<float>::quiet_NaN()})
                .tensor_f32("cube", {2, 2, 2}, std::vector<float>(8, 1.0F))
                .tensor_f32("large", {1025, 1025}, std::vector<float>(1025 * 1025, 1.0F)));
  for (const TensorStudy& study : studies) EXPECT_FALSE(study.rank);
  EXPECT_EQ(studies[0].rank_note, "holds NaN or infinite values");
  EXPECT_TRUE(std::isnan(studies[0].norm));
  EXPECT_EQ(studies[1].rank_note, "has more than two dimensions");
  EXPECT_EQ(studies[2].rank_note, "its smaller side is above 1024");
}

TEST(InspectDeep, ProgressRunsFromZeroToOneAndCanStop) {
  const auto file =
      formats::open_bytes(GgufBuilder().tensor_f32("m", {7, 300}, rank_two(300, 7)).build());
  ASSERT_TRUE(file);
  double last = 0.0;
  ASSERT_TRUE(study_tensors(*file, [&last](std::string_view tensor, double share) {
    EXPECT_EQ(tensor, "m");
    EXPECT_GE(share, last);
    EXPECT_LE(share, 1.0);
    last = share;
    return true;
  }));
  EXPECT_GT(last, 0.5);
  const auto stopped = study_tensors(*file, [](std::string_view, double) { return false; });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code(), Code::kCancelled);
}

}  // namespace
}  // namespace cicada::cli
