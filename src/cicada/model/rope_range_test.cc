#include "cicada/model/rope_range.h"

#include <gtest/gtest.h>

#include <cmath>

namespace cicada::model {
namespace {

Config of_layers(std::vector<LayerConfig> layers) {
  Config config;
  config.rope_dim = 64;
  config.layers = std::move(layers);
  return config;
}

TEST(RopeRange, IsTheInverseOfThePublishedBound) {
  for (const double tokens : {1000.0, 8192.0, 131072.0}) {
    EXPECT_NEAR(rope_range(0.0424 * std::pow(tokens, 1.628)), tokens, 1e-6 * tokens);
  }
  EXPECT_NEAR(rope_range(10000.0), 1995.0, 5.0);  // models of base 10,000 were trained for 2,048
  EXPECT_NEAR(rope_range(500000.0), 22000.0, 300.0);
}

TEST(RopeRange, LinearScalingReachesItsFactorFurther) {
  EXPECT_DOUBLE_EQ(rope_range(10000.0, 4.0), 4.0 * rope_range(10000.0));
}

TEST(RopeRange, OfAModelIsThatOfItsShortestLayer) {
  EXPECT_EQ(rope_range(of_layers({{.rope_base = 1e6}, {.rope_base = 1e4}})),
            rope_range(of_layers({{.rope_base = 1e4}})));
}

TEST(RopeRange, AWindowThatTheBaseSupportsIsNoLimit) {
  EXPECT_EQ(rope_range(of_layers({{.rope_base = 1e4, .window = 512}})), std::nullopt);
  EXPECT_EQ(rope_range(of_layers({{.rope_base = 1e4, .window = 512}, {.rope_base = 1e6}})),
            rope_range(of_layers({{.rope_base = 1e6}})));
  EXPECT_TRUE(rope_range(of_layers({{.rope_base = 1e4, .window = 4096}})).has_value());
}

TEST(RopeRange, WithoutRopeThereIsNone) {
  Config config = of_layers({{}});
  config.rope_dim = 0;
  EXPECT_EQ(rope_range(config), std::nullopt);
}

}  // namespace
}  // namespace cicada::model
