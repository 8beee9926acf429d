#include "cicada/platform/interrupt.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
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
}

TEST(InterruptDeathTest, ARequestToEndIsNotForgotten) {
  for (const int signal : {SIGTERM, SIGHUP}) {
    EXPECT_EXIT(
        {
          install_interrupt_handler();
          std::raise(signal);
          clear_interrupt();
          std::_Exit(interrupted() ? 7 : 8);
        },
        testing::ExitedWithCode(7), "");
  }
}

TEST(InterruptDeathTest, AMappedFileThatIsCutShortIsOneSentence) {
  EXPECT_EXIT(
      {
        install_interrupt_handler();
        const int file = ::memfd_create("cut", 0);
        constexpr std::size_t kBytes = 4096;
        if (::ftruncate(file, kBytes) != 0) std::_Exit(9);
        auto* data =
            static_cast<volatile char*>(::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, file, 0));
        if (::ftruncate(file, 0) != 0) std::_Exit(9);
        std::_Exit(data[0]);
      },
      testing::ExitedWithCode(1), "cut short");
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
