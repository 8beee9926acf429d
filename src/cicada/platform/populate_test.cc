#include "cicada/platform/populate.h"

#include <gtest/gtest.h>

#include <vector>

namespace cicada::platform {
namespace {

TEST(Populate, LeavesWhatIsThere) {
  std::vector<std::byte> memory(1 << 20, std::byte{7});
  populate(memory.data(), memory.size());
  for (const std::byte byte : memory) ASSERT_EQ(byte, std::byte{7});
}

TEST(Populate, NothingToDoIsDone) { EXPECT_TRUE(populate(nullptr, 0)); }

}  // namespace
}  // namespace cicada::platform
