#include "cicada/engine/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace cicada::engine {
namespace {

model::Peak peak_of(std::span<const float> logits) {
  model::Peak peak;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const model::Peak one{.value = logits[i], .index = static_cast<std::uint32_t>(i)};
    peak.is_damaged |= !(one.value < INFINITY);
    if (one.value > peak.value) peak = {one.value, one.index, peak.is_damaged};
  }
  return peak;
}

Result<TokenId> sample(Sampler& sampler, const std::vector<float>& logits,
                       const SamplerOptions& options, std::uint64_t choice,
                       std::uint64_t position) {
  return sampler.sample(logits, peak_of(logits), options, choice, position);
}

std::vector<float> ramp() {
  std::vector<float> logits(1000);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits[i] = std::sin(static_cast<float>(i)) * 3.0F;
  }
  logits[417] = 9.0F;
  return logits;
}

TEST(Sampler, NeutralOrSharpestOptionsAreGreedy) {
  const auto logits = ramp();
  Sampler sampler(logits.size());
  const SamplerOptions cases[] = {
      {.temperature = 0.0F},
      {.temperature = 0.0F, .top_p = 0.0F},
      {.temperature = 0.0F, .top_p = 1e-9F},
      {.temperature = 0.0F, .top_k = 1},
      {.temperature = 0.0F, .min_p = 1.0F},
      {.temperature = 1e-9F},
      {.temperature = 1.0F, .top_k = 1},
      {.temperature = 1.0F, .top_p = 0.0F},
      {.temperature = 1.0F, .top_p = 1e-9F},
      {.temperature = 1.0F, .min_p = 1.0F},
  };
  for (const SamplerOptions& options : cases) {
    for (std::uint64_t position = 0; position < 50; ++position) {
      EXPECT_EQ(sample(sampler, logits, options, 0, position).value(), TokenId(417));
    }
  }
}

TEST(Sampler, TiesGoToTheLowestId) {
  Sampler sampler(3);
  EXPECT_EQ(sample(sampler, {1.0F, 5.0F, 5.0F}, {}, 0, 7).value(), TokenId(1));
  EXPECT_EQ(sample(sampler, {5.0F, 5.0F, 5.0F}, {.temperature = 1.0F, .top_k = 1}, 0, 7).value(),
            TokenId(0));
}

TEST(Sampler, LogitsThatAreNotFiniteAreRefusedWhereverTheyAre) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr SamplerOptions kOptions[] = {
      {}, {.temperature = 1.0F}, {.temperature = 1.0F, .top_k = 1}};
  Sampler sampler(1000);
  for (const float bad : {kNan, -kNan, kInfinity}) {
    for (const std::size_t at : {0U, 5U, 417U, 999U}) {  // 417 is the largest
      std::vector<float> logits = ramp();
      logits[at] = bad;
      const auto checked = check_logits(logits, peak_of(logits));
      ASSERT_FALSE(checked.has_value()) << at;
      EXPECT_EQ(checked.error().code(), Code::kInternal);
      EXPECT_NE(checked.error().message().find("the model's logits are not finite"),
                std::string::npos);
      EXPECT_NE(checked.error().message().find(fmt::format("token {} ", at)), std::string::npos)
          << checked.error().message();
      for (const SamplerOptions& options : kOptions) {
        EXPECT_FALSE(sample(sampler, logits, options, 0, 0).has_value()) << at;
      }
    }
  }
  const std::vector<float> nothing(1000, -kInfinity);
  EXPECT_FALSE(check_logits(nothing, peak_of(nothing)).has_value());
  EXPECT_FALSE(sample(sampler, nothing, {}, 0, 0).has_value());
}

TEST(Sampler, MinusInfinityIsNeverChosen) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> logits = {-kInfinity, 1.0F, 2.0F, -kInfinity};
  EXPECT_TRUE(check_logits(logits, peak_of(logits)).has_value());
  Sampler sampler(logits.size());
  for (std::uint64_t position = 0; position < 50; ++position) {
    const TokenId token = sample(sampler, logits, {.temperature = 5.0F}, 0, position).value();
    EXPECT_TRUE(token == TokenId(1) || token == TokenId(2)) << token.value;
  }
}

TEST(Sampler, FrequenciesFollowTheSoftmax) {
  const std::vector<float> logits = {std::log(1.0F), std::log(2.0F), std::log(5.0F)};
  Sampler sampler(logits.size());
  int counts[3] = {};
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    const SamplerOptions options{.temperature = 1.0F, .seed = 3};
    ++counts[sample(sampler, logits, options, 0, static_cast<std::uint64_t>(i)).value().value];
  }
  // Four standard deviations of a binomial share at 20,000 draws are below 0.0142.
  EXPECT_NEAR(counts[0] / double{kDraws}, 0.125, 0.0142);
  EXPECT_NEAR(counts[1] / double{kDraws}, 0.250, 0.0142);
  EXPECT_NEAR(counts[2] / double{kDraws}, 0.625, 0.0142);
}

TEST(Sampler, CutsKeepTheLikeliest) {
  std::vector<float> logits(5000, 0.0F);
  for (std::size_t i = 0; i < 100; ++i) logits[i * 37] = 5.0F + static_cast<float>(i) * 0.01F;
  Sampler sampler(logits.size());
  for (std::uint64_t position = 0; position < 300; ++position) {
    const TokenId by_k =
        sample(sampler, logits, {.temperature = 2.0F, .top_k = 10}, 0, position).value();
    EXPECT_GE(by_k.value, 90 * 37);
    const TokenId by_p =
        sample(sampler, logits, {.temperature = 1.0F, .top_p = 0.5F}, 0, position).value();
    EXPECT_EQ(by_p.value % 37, 0);
  }
}

TEST(Sampler, DrawsDependOnSeedChoiceAndPositionOnly) {
  EXPECT_EQ(counter_uniform(1, 2, 3), counter_uniform(1, 2, 3));
  EXPECT_NE(counter_uniform(1, 2, 3), counter_uniform(1, 3, 2));
  EXPECT_NE(counter_uniform(1, 2, 3), counter_uniform(2, 2, 3));
}

TEST(SamplerOptions, BadValuesAreNamed) {
  for (const float bad :
       {-1.0F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const auto result = check({.temperature = bad});
    ASSERT_FALSE(result.has_value());
    EXPECT_NE(result.error().message().find("temperature"), std::string::npos);
  }
  EXPECT_FALSE(check({.top_p = 1.5F}).has_value());
  EXPECT_FALSE(check({.min_p = -0.1F}).has_value());
}

}  // namespace
}  // namespace cicada::engine
