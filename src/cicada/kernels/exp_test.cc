// e^x of simd-inl.h, which attention and gates share. The vector levels are reached through the
// kernels: merge() weighs a partial result with e^(difference of maxima).
#include <bit>
#include <cmath>

#include "cicada/kernels/attention/attention.h"
#include "cicada/kernels/simd-inl.h"
#include "cicada/kernels/test_support.h"

namespace cicada::kernels {
namespace {

// The distance in units in the last place of the exact result.
double units_off(float got, double exact) {
  const double unit = std::exp2(std::floor(std::log2(exact)) - 23.0);
  return std::fabs(static_cast<double>(got) - exact) / unit;
}

float scalar_exp(float x) {
  float lanes[16];
  store(lanes, exp(broadcast(x)));
  return lanes[0];
}

// A running sum of 1 at maximum x, folded into an empty result at maximum 0: 1 * e^x.
float level_exp(platform::IsaLevel level, float x) {
  alignas(64) float total[16] = {};
  alignas(64) const float out[16] = {};
  float total_stats[2] = {x, 1.0F};
  const float stats[2] = {0.0F, 0.0F};
  attention_kernels(level).merge(out, stats, 16, total, total_stats);
  return total_stats[1];
}

TEST(Exp, IsWithinTwoUnitsFromMinus87To88) {
  // Numbers as dense as float32 has them near 0, evenly spread elsewhere.
  std::vector<float> xs = {0.0F, -0.0F, 88.0F, std::nextafter(-87.0F, 0.0F), 0.34657359F};
  for (float x = 1e-10F; x < 1.0F; x *= 1.003F) xs.insert(xs.end(), {x, -x});
  for (std::size_t i = 1; i < 400000; ++i) xs.push_back(-87.0F + static_cast<float>(i) * 4.375e-4F);
  double worst = 0.0;
  float where = 0.0F;
  for (const float x : xs) {
    if (x <= -87.0F || x > 88.0F) continue;
    const double off = units_off(scalar_exp(x), std::exp(static_cast<double>(x)));
    if (off > worst) {
      worst = off;
      where = x;
    }
  }
  EXPECT_LE(worst, 2.0) << "at " << where;
}

TEST(Exp, IsExactlyZeroBelowAndStopsAbove) {
  for (const float x : {-87.0F, -87.5F, -104.0F, -1e30F, -INFINITY}) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(scalar_exp(x)), 0U) << x;
    for (const platform::IsaLevel level : runnable_levels()) {
      EXPECT_EQ(level_exp(level, x), 0.0F) << platform::name(level) << x;
    }
  }
  for (const float x : {88.5F, 1000.0F, INFINITY}) EXPECT_EQ(scalar_exp(x), scalar_exp(88.0F));
  EXPECT_EQ(scalar_exp(0.0F), 1.0F);
}

TEST(Exp, LevelsGiveEqualBits) {
  for (const platform::IsaLevel level : runnable_levels()) {
    for (std::size_t i = 0; i < 20000; ++i) {
      const float x = -static_cast<float>(i) * 0.00437F;
      ASSERT_EQ(level_exp(level, x), scalar_exp(x)) << platform::name(level) << " " << x;
    }
  }
}

}  // namespace
}  // namespace cicada::kernels
