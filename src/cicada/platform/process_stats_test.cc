#include "cicada/platform/process_stats.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <vector>

#include "cicada/platform/fd.h"
#include "cicada/platform/resources.h"

namespace cicada::platform {
namespace {

// Fields 3 to 26: state, then numbers, some of them negative.
constexpr const char* kRest =
    " S 1 1 1 0 -1 4194560 9 8 7 6 250 30 0 0 20 0 5 0 777 4096000 321 9 9\n";

TEST(StatLine, NameMayHoldBracketsAndSpaces) {
  for (const char* name : {"(cicada)", "(a) b (c)", "()) 1 2 3 (()", "()"}) {
    const auto line = parse_stat_line(std::string("42 ") + name + kRest);
    ASSERT_TRUE(line) << name;
    EXPECT_EQ(*line, (StatLine{.user_ticks = 250,
                               .system_ticks = 30,
                               .start_ticks = 777,
                               .virtual_bytes = 4096000,
                               .resident_pages = 321}));
  }
}

TEST(StatLine, OtherFormsAreNothing) {
  for (const char* text : {"", "42", "42 (cicada", "42 (cicada)", "42 (cicada) S 1 2 3",
                           "1 (x) S 1 1 1 0 -1 4 9 8 7 6 -250 30 0 0 20 0 5 0 777 4096 321 9"}) {
    EXPECT_FALSE(parse_stat_line(text)) << text;
  }
}

TEST(ProcessStats, OfThisProcessArePlausible) {
  const auto stats = process_stats();
  ASSERT_TRUE(stats) << stats.error().to_string();
  EXPECT_GE(stats->cpu_seconds, 0);
  EXPECT_GT(stats->resident_bytes, 1U << 16);
  EXPECT_LE(stats->resident_bytes, peak_resident_bytes() + (1U << 20));
  EXPECT_GE(stats->virtual_bytes, stats->resident_bytes);
  EXPECT_GT(stats->max_fds, stats->open_fds);
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  EXPECT_LT(stats->start_time_seconds, now + 2);  // the system's start is known to a second
  EXPECT_GT(stats->start_time_seconds, now - 86400.0 * 365);
}

TEST(ProcessStats, EachOpenDescriptorIsCounted) {
  const auto before = process_stats(::getpid());
  std::vector<Fd> fds;
  for (int i = 0; i < 5; ++i) fds.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const auto after = process_stats();
  ASSERT_TRUE(before && after);
  EXPECT_EQ(after->open_fds, before->open_fds + 5);
}

TEST(ProcessStats, NoSuchProcessIsNotFound) {
  const auto stats = process_stats(1 << 30);
  ASSERT_FALSE(stats);
  EXPECT_EQ(stats.error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace cicada::platform
