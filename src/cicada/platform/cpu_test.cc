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
