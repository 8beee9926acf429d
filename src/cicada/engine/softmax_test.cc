#include "cicada/engine/softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace cicada::engine {
namespace {

TEST(SoftmaxWeights, AreTheExponentialToFourteenDigits) {
  std::vector<float> logits;
  for (int i = 0; i <= 7000; ++i) logits.push_back(3.0F - 0.1F * static_cast<float>(i));
  for (const float temperature : {0.3F, 1.0F, 7.5F}) {
    std::vector<double> weights(logits.size());
    softmax_weights(logits, 3.0F, temperature, weights);
    EXPECT_EQ(weights[0], 1.0);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double x = (static_cast<double>(logits[i]) - 3.0) / static_cast<double>(temperature);
      if (x <= -706.0) {
        EXPECT_EQ(weights[i], 0.0) << x;
      } else {
        EXPECT_NEAR(weights[i] / std::exp(x), 1.0, 1e-14) << x;
      }
    }
  }
}

TEST(SoftmaxWeights, WhatCannotBeDrawnWeighsNothing) {
  const std::vector<float> logits = {0.0F, -std::numeric_limits<float>::infinity(), -3e38F};
  std::vector<double> weights(3);
  softmax_weights(logits, 0.0F, 1e-9F, weights);
  EXPECT_EQ(weights, (std::vector<double>{1.0, 0.0, 0.0}));
}

}  // namespace
}  // namespace cicada::engine
