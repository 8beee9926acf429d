#include "cicada/platform/interrupt.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace cicada::platform {
namespace {

TEST(Interrupt, FirstSignalOnlySetsTheFlag) {
  install_interrupt_handler();
  EXPECT_FALSE(interrupted());
  std::raise(SIGINT);
  EXPECT_TRUE(interrupted());
  clear_interrupt();
  EXPECT_FALSE(interrupted());
  std::raise(SIGTERM);
  EXPECT_TRUE(interrupted());
  clear_interrupt();
}

TEST(Interrupt, APipeThatNobodyReadsIsAnErrorAndNoSignal) {
  install_interrupt_handler();
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  ::close(ends[0]);
  EXPECT_EQ(::write(ends[1], "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);
  ::close(ends[1]);
}

TEST(InterruptDeathTest, SecondSignalEndsTheProcessWithStatusOne) {
  EXPECT_EXIT(
      {
        install_interrupt_handler();
        std::raise(SIGINT);
        std::raise(SIGTERM);
      },
      testing::ExitedWithCode(1), "");
}

}  // namespace
}  // namespace cicada::platform
