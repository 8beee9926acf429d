#include "cicada/cli/common.h"

#include <gtest/gtest.h>

namespace cicada::cli {
namespace {

TEST(SlowLevelNotice, OnlyWhereNothingBetterIsThereAndNobodyAskedForIt) {
  const auto of = [](std::uint32_t features, std::string_view forced) {
    return slow_level_notice(*platform::choose_isa_level(features, forced), forced);
  };
  // A processor with FMA's and AVX-512's bits but without AVX2 has no level of ours but scalar.
  for (const std::uint32_t features : {0U, platform::kCpuAvxVnni | platform::kCpuAvx512}) {
    ASSERT_TRUE(of(features, "").has_value());
    EXPECT_NE(of(features, "")->find("AVX2"), std::string::npos);
    EXPECT_EQ(of(features, "")->find('\n'), std::string::npos);
  }
  EXPECT_EQ(of(0, "scalar"), std::nullopt);
  EXPECT_EQ(of(platform::kCpuAvx2, ""), std::nullopt);
}

}  // namespace
}  // namespace cicada::cli
