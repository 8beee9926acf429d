#include "cicada/cli/gram_rank.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace cicada::cli {
namespace {

const KeepGoing kAlways = [] { return true; };

// Vectors [n, side] of a random matrix of that rank; n a multiple of GramMatrix::kGroup.
std::vector<double> random_panel(std::size_t n, std::size_t side, std::size_t rank,
                                 double scale = 1.0) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  std::vector<double> left(n * rank);
  std::vector<double> right(rank * side);
  for (double& x : left) x = normal(random);
  for (double& x : right) x = normal(random);
  std::vector<double> panel(n * side);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t r = 0; r < rank; ++r) {
      for (std::size_t j = 0; j < side; ++j) {
        panel[i * side + j] += scale * left[i * rank + r] * right[r * side + j];
      }
    }
  }
  return panel;
}

std::size_t rank_of(const std::vector<double>& panel, std::size_t side) {
  GramMatrix gram(side);
  gram.add(panel);
  return *std::move(gram).rank(kAlways);
}

TEST(GramRank, FindsTheRankThatAMatrixWasMadeWith) {
  for (const std::size_t rank : {1U, 2U, 17U, 39U, 40U}) {
    EXPECT_EQ(rank_of(random_panel(64, 40, rank), 40), rank);
  }
}

TEST(GramRank, DoesNotDependOnScale) {
  EXPECT_EQ(rank_of(random_panel(64, 40, 17, 1e-38), 40), 17U);
  EXPECT_EQ(rank_of(random_panel(64, 40, 17, 1e35), 40), 17U);
}

TEST(GramRank, RoundingToFloatAddsNoRank) {
  std::vector<double> panel = random_panel(64, 40, 17);
  for (double& x : panel) x = static_cast<double>(static_cast<float>(x));
  EXPECT_EQ(rank_of(panel, 40), 17U);
}

TEST(GramRank, CountsSingularValuesAboveTheTolerance) {
  constexpr std::size_t kSide = 6;
  std::vector<double> panel(GramMatrix::kGroup * kSide);
  const double values[kSide] = {1.0, 1e-2, 2e-5, 0.5e-5, 1e-9, 0.0};
  for (std::size_t i = 0; i < kSide; ++i) panel[i * kSide + i] = values[i];
  EXPECT_EQ(rank_of(panel, kSide), 3U);
}

TEST(GramRank, PanelsAddUp) {
  const std::vector<double> panel = random_panel(64, 40, 17);
  const std::span<const double> all(panel);
  GramMatrix gram(40);
  gram.add(all.first(8 * 40));
  EXPECT_EQ(*GramMatrix(gram).rank(kAlways), 8U);
  gram.add(all.subspan(8 * 40));
  EXPECT_EQ(*std::move(gram).rank(kAlways), 17U);
}

TEST(GramRank, KnowsZeroAndOneByOne) {
  EXPECT_EQ(rank_of(std::vector<double>(GramMatrix::kGroup * 5), 5), 0U);
  EXPECT_EQ(rank_of({0, 0, 0, 1e-30, 0, 0, 0, 0}, 1), 1U);
}

TEST(GramRank, StopsWhenAsked) {
  GramMatrix gram(5);
  const auto rank = std::move(gram).rank([] { return false; });
  ASSERT_FALSE(rank);
  EXPECT_EQ(rank.error().code(), Code::kCancelled);
}

}  // namespace
}  // namespace cicada::cli
