#include "cicada/platform/resources.h"

#include <gtest/gtest.h>

namespace cicada::platform {
namespace {

constexpr const char* kMeminfo = "MemTotal:       24000000 kB\nMemAvailable:   1000 kB\n";

TEST(AvailableMemory, IsTheLeastOfTheMachineAndEveryGroup) {
  EXPECT_EQ(available_memory_bytes(kMeminfo, {}, {}), 1'024'000U);
  EXPECT_EQ(available_memory_bytes(kMeminfo, {"max"}, {"5"}), 1'024'000U);
  EXPECT_EQ(available_memory_bytes(kMeminfo, {"5000", "900"}, {"100", "200"}), 700U);
  EXPECT_EQ(available_memory_bytes(kMeminfo, {"5000", "max"}, {"100", "200"}), 4900U);
}

TEST(AvailableMemory, AGroupAboveItsLimitHasNone) {
  EXPECT_EQ(available_memory_bytes(kMeminfo, {"100"}, {"200"}), 0U);
}

TEST(AvailableMemory, WithoutAWordItIsWithoutALimit) {
  EXPECT_EQ(available_memory_bytes("", {}, {}), std::uint64_t{1} << 63);
  EXPECT_EQ(available_memory_bytes("MemAvailable: none", {"?"}, {"?"}), std::uint64_t{1} << 63);
}

TEST(AvailableMemory, OfThisMachineIsSomething) {
  EXPECT_GT(available_memory_bytes(), 0U);
  EXPECT_GT(peak_resident_bytes(), 0U);
}

}  // namespace
}  // namespace cicada::platform
