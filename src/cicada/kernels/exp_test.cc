// e^x and 2^x of simd-inl.h, of gates and of attention. The vector levels are reached through the
// kernels: merge() weighs a partial result with 2^(difference of maxima); levels of e^x are
// compared where gates are.
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

float scalar_exp2(float x) {
  float lanes[16];
  store(lanes, exp2_of_negative(broadcast(x)));
  return lanes[0];
}

// A running sum of 1 at maximum x, folded into an empty result at maximum 0: 1 * 2^x.
float level_exp2(platform::IsaLevel level, float x) {
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
  }
  for (const float x : {88.5F, 1000.0F, INFINITY}) EXPECT_EQ(scalar_exp(x), scalar_exp(88.0F));
  EXPECT_EQ(scalar_exp(0.0F), 1.0F);
}

TEST(Exp2, IsWithinAUnitFromMinus126ToZero) {
  double worst = 0.0;
  float where = 0.0F;
  const auto check = [&](float x) {
    const double off = units_off(scalar_exp2(x), std::exp2(static_cast<double>(x)));
    if (off <= worst) return;
    worst = off;
    where = x;
  };
  for (float x = 1e-10F; x < 1.0F; x *= 1.003F) check(-x);
  for (std::size_t i = 0; i <= 400000; ++i) check(-3.149e-4F * static_cast<float>(i));
  EXPECT_LE(worst, 1.0) << "at " << where;
}

TEST(Exp2, IsExactlyOneAtZeroAndZeroFromMinus127Down) {
  for (const platform::IsaLevel level : runnable_levels()) {
    EXPECT_EQ(level_exp2(level, 0.0F), 1.0F) << platform::name(level);
    for (const float x : {-127.0F, -127.5F, -1000.0F, -1e30F, -INFINITY}) {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(level_exp2(level, x)), 0U)
          << platform::name(level) << x;
    }
    // Between 2^-126 and 2^-127 it is small, and never negative.
    for (float x = -127.0F; x < -125.9F; x += 0.01F) {
      EXPECT_GE(level_exp2(level, x), 0.0F);
      EXPECT_LE(level_exp2(level, x), 0x1p-125F);
    }
  }
}

TEST(Exp2, LevelsGiveEqualBits) {
  for (const platform::IsaLevel level : runnable_levels()) {
    for (std::size_t i = 0; i < 20000; ++i) {
      const float x = -static_cast<float>(i) * 0.0063F;
      ASSERT_EQ(level_exp2(level, x), scalar_exp2(x)) << platform::name(level) << " " << x;
    }
  }
}

}  // namespace
}  // namespace cicada::kernels
