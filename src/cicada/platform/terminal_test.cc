#include "cicada/platform/terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace cicada::platform {
namespace {

// Both ends of a pseudo terminal of 20 columns.
class Terminal {
 public:
  Terminal() : master_(::posix_openpt(O_RDWR | O_NOCTTY)) {
    if (master_ < 0 || ::grantpt(master_) != 0 || ::unlockpt(master_) != 0) return;
    std::array<char, 128> name{};
    if (::ptsname_r(master_, name.data(), name.size()) != 0) return;
    slave_ = ::open(name.data(), O_RDWR | O_NOCTTY);
    struct winsize size {};
    size.ws_col = 20;
    ::ioctl(slave_, TIOCSWINSZ, &size);
    ::fcntl(master_, F_SETFL, O_NONBLOCK);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  ~Terminal() {
    ::close(slave_);
    ::close(master_);
  }

  bool usable() const { return slave_ >= 0; }
  int fd() const { return slave_; }

  // What was written since the last call.
  std::string screen() const {
    std::array<char, 512> buffer{};
    const ssize_t got = ::read(master_, buffer.data(), buffer.size());
    return got <= 0 ? std::string() : std::string(buffer.data(), static_cast<std::size_t>(got));
  }

 private:
  int master_ = -1;
  int slave_ = -1;
};

TEST(Terminal, PipeIsNoTerminalAndShowsNoProgress) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_NONBLOCK), 0);
  EXPECT_FALSE(is_terminal(ends[1]));
  EXPECT_FALSE(colours_wanted(ends[1]));
  EXPECT_EQ(terminal_columns(ends[1]), 80);
  {
    Progress progress(ends[1]);
    progress.update("half done");
    progress.clear();
  }
  std::array<char, 16> buffer{};
  EXPECT_EQ(::read(ends[0], buffer.data(), buffer.size()), -1);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(Terminal, ProgressRewritesOneLineAndCutsItToTheWidth) {
  const Terminal terminal;
  if (!terminal.usable()) GTEST_SKIP() << "no pseudo terminal on this machine";
  EXPECT_EQ(terminal_columns(terminal.fd()), 20);
  Progress progress(terminal.fd());
  progress.update("0123456789012345678901234567890");
  EXPECT_EQ(terminal.screen(), "\r0123456789012345678\x1b[K");
  progress.clear();
  EXPECT_EQ(terminal.screen(), "\r\x1b[K");
  progress.clear();
  EXPECT_EQ(terminal.screen(), "");
}

TEST(Terminal, ProgressUpdatesAtMostTenTimesASecond) {
  const Terminal terminal;
  if (!terminal.usable()) GTEST_SKIP() << "no pseudo terminal on this machine";
  Progress progress(terminal.fd());
  const Progress::Clock::time_point start{std::chrono::seconds(1)};
  progress.update("a", start);
  progress.update("b", start + std::chrono::milliseconds(99));
  EXPECT_EQ(terminal.screen(), "\ra\x1b[K");
  progress.update("c", start + std::chrono::milliseconds(100));
  EXPECT_EQ(terminal.screen(), "\rc\x1b[K");
}

TEST(Terminal, NoColorSwitchesColoursOff) {
  const Terminal terminal;
  if (!terminal.usable()) GTEST_SKIP() << "no pseudo terminal on this machine";
  ::setenv("TERM", "xterm", 1);
  ::unsetenv("NO_COLOR");
  EXPECT_TRUE(colours_wanted(terminal.fd()));
  ::setenv("NO_COLOR", "", 1);
  EXPECT_TRUE(colours_wanted(terminal.fd()));
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(colours_wanted(terminal.fd()));
  ::unsetenv("NO_COLOR");
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(colours_wanted(terminal.fd()));
}

TEST(Terminal, BytesAreWrittenWithDecimalUnits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(999), "999 B");
  EXPECT_EQ(format_bytes(98362432), "98.4 MB");
  EXPECT_EQ(format_bytes(999960), "1.0 MB");
  EXPECT_EQ(format_bytes(1117320768), "1.1 GB");
}

}  // namespace
}  // namespace cicada::platform
