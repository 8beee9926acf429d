#include "cicada/model/kv_policy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace cicada::model {
namespace {

// C038: the angle rule is a window, whatever the angle and the base.
TEST(KvPolicy, TheAngleRuleKeepsExactlyAWindow) {
  for (const double tau : {0.1, 0.05, 0.001, 1.0, 3.14159, 2.0 * std::numbers::pi}) {
    for (const double theta : {500000.0, 10000.0, 1000.0, 100.0, 64.0, 7.0}) {
      const std::int64_t window = window_of_angle(tau, theta);
      EXPECT_NEAR(static_cast<double>(window), tau * theta / (2.0 * std::numbers::pi) + 0.5, 0.51);
      for (std::int64_t i = 0; i < 2 * window + 10; i += 1 + window / 50) {
        for (const std::int64_t d : {std::int64_t{0}, i, window - 1, window, window + 1}) {
          const std::int64_t j = i - d;
          if (j < 0) continue;
          const bool is_dropped =
              std::fabs(static_cast<double>(i - j) / theta * 2 * std::numbers::pi) > tau;
          EXPECT_EQ(is_dropped, j < KvPolicy{.window = window}.first_key(i))
              << tau << " " << theta << " " << i << " " << j;
        }
      }
    }
  }
  EXPECT_EQ(window_of_angle(0.1, 500000.0), 7957 + 1);  // 7,957 tokens and the query's own
}

TEST(KvPolicy, NamesReadBackAsTheSame) {
  for (const char* text :
       {"all", "window:1", "window:4096", "window:4096,sinks:4", "pages:4", "pages:32"}) {
    const auto policy = parse_kv_policy(text);
    ASSERT_TRUE(policy.has_value()) << text;
    EXPECT_EQ(kv_policy_name(*policy), text);
  }
  EXPECT_EQ(kv_policy_name(*parse_kv_policy("angle:0.1")), "window:7958");
  EXPECT_EQ(kv_policy_name(*parse_kv_policy("sinks:4,angle:0.1,theta:1000")), "window:16,sinks:4");
}

TEST(KvPolicy, WhatIsNotOneIsRefusedWithWhatIsAllowed) {
  for (const char* text : {"",
                           "ALL",
                           "all,sinks:4",
                           "window",
                           "window:",
                           "window:0",
                           "window:-1",
                           "window:1.5",
                           "window:4x",
                           "window:99999999999",
                           "sinks:4",
                           "theta:5",
                           "window:5,theta:3",
                           "window:5,angle:1",
                           "window:5,window:6",
                           "angle:0",
                           "angle:nan",
                           "angle:inf",
                           "angle:1e300",
                           "pages:3",
                           "pages:8,sinks:4",
                           "window:512,pages:8",
                           "pages:",
                           "pages:8,pages:9",
                           "window:5,",
                           "all,",
                           "window:5,,sinks:1"}) {
    const auto policy = parse_kv_policy(text);
    ASSERT_FALSE(policy.has_value()) << text;
    EXPECT_EQ(policy.error().code(), Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace cicada::model
