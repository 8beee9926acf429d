#include "cicada/platform/interrupt.h"

#include <gtest/gtest.h>

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
