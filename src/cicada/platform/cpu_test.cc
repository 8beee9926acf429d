#include "cicada/platform/cpu.h"

#include <gtest/gtest.h>

namespace cicada::platform {
namespace {

constexpr std::uint32_t kZen4 = kCpuAvx2 | kCpuAvx512 | kCpuAvx512Vnni | kCpuAvx512Bf16;

TEST(IsaLevel, BestSupportedLevelIsChosen) {
  EXPECT_EQ(*choose_isa_level(0, ""), IsaLevel::kScalar);
  EXPECT_EQ(*choose_isa_level(kCpuAvx2, ""), IsaLevel::kAvx2);
  EXPECT_EQ(*choose_isa_level(kZen4, ""), IsaLevel::kAvx512Vnni);
}

TEST(IsaLevel, WithoutAvx2OnlyScalarIsThereWhateverElseTheProcessorHas) {
  const std::uint32_t others = ~std::uint32_t{kCpuAvx2};
  for (const IsaLevelInfo& entry : kIsaLevels) {
    const bool is_scalar = entry.level == IsaLevel::kScalar;
    EXPECT_EQ(is_supported(entry.level, others), is_scalar) << entry.name;
    EXPECT_EQ(choose_isa_level(others, entry.name).has_value(), is_scalar) << entry.name;
  }
  EXPECT_EQ(*choose_isa_level(others, ""), IsaLevel::kScalar);
}

TEST(IsaLevel, EveryLevelNeedsAllOfItsFeatures) {
  for (const IsaLevelInfo& entry : kIsaLevels) {
    EXPECT_TRUE(is_supported(entry.level, entry.needs)) << entry.name;
    for (std::uint32_t bit = 1; bit != 0; bit <<= 1U) {
      if ((entry.needs & bit) == 0) continue;
      EXPECT_FALSE(is_supported(entry.level, ~bit)) << entry.name << " without " << bit;
    }
  }
}

TEST(IsaLevel, ForcingALowerLevelWorks) {
  EXPECT_EQ(*choose_isa_level(kZen4, "scalar"), IsaLevel::kScalar);
  EXPECT_EQ(*choose_isa_level(kZen4, "avx2"), IsaLevel::kAvx2);
}

TEST(IsaLevel, ForcingWhatTheMachineLacksIsAnErrorThatListsWhatItHas) {
  const auto level = choose_isa_level(kCpuAvx2, "avx512vnni");
  ASSERT_FALSE(level.has_value());
  EXPECT_EQ(level.error().code(), Code::kUnsupported);
  EXPECT_NE(level.error().message().find("scalar, avx2"), std::string::npos);
}

TEST(IsaLevel, UnknownNameIsAnError) {
  EXPECT_EQ(choose_isa_level(kZen4, "sse9").error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace cicada::platform
