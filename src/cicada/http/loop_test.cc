#include "cicada/http/loop.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

namespace cicada::http {
namespace {

using std::chrono::milliseconds;

TEST(Loop, PostedWorkRunsInOrderAndBeforeTheStop) {
  Loop loop;
  std::string order;
  loop.post([&] {
    order += "a";
    loop.post([&] { order += "c"; });
  });
  loop.post([&] { order += "b"; });
  loop.post([&] { loop.stop(); });
  loop.run();
  EXPECT_EQ(order, "abc");
}

TEST(Loop, RunsAgainAfterAStop) {
  Loop loop;
  int num_runs = 0;
  for (int i = 0; i < 2; ++i) {
    loop.post([&] { ++num_runs; });
    loop.stop();
    loop.run();
  }
  EXPECT_EQ(num_runs, 2);
}

TEST(Loop, OtherThreadsMayPostAndStop) {
  Loop loop;
  int num_runs = 0;
  std::jthread other([&] {
    for (int i = 0; i < 100; ++i) loop.post([&] { ++num_runs; });
    loop.stop();
  });
  loop.run();
  EXPECT_EQ(num_runs, 100);
}

TEST(Loop, TimersRunInTheOrderOfTheirTimes) {
  Loop loop;
  std::string order;
  const auto late = loop.after(milliseconds(4), [&] {
    order += "late";
    loop.stop();
  });
  const auto early = loop.after(milliseconds(1), [&] { order += "early "; });
  loop.run();
  EXPECT_EQ(order, "early late");
}

TEST(Loop, DestroyedTimerIsNotCalledEvenWhenItHasRunOut) {
  Loop loop;
  bool was_called = false;
  auto timer = loop.after(milliseconds(0), [&] { was_called = true; });
  std::this_thread::sleep_for(milliseconds(2));
  loop.post([&] { timer.reset(); });
  const auto end = loop.after(milliseconds(5), [&] { loop.stop(); });
  loop.run();
  EXPECT_FALSE(was_called);
}

TEST(Loop, TimerMayBeDestroyedByItsOwnCallback) {
  Loop loop;
  std::unique_ptr<Timer> timer;
  std::string text;
  timer = loop.after(milliseconds(1), [&, kept = std::string(100, 'x')] {
    timer.reset();
    text = kept;
    loop.stop();
  });
  loop.run();
  EXPECT_EQ(text, std::string(100, 'x'));
}

}  // namespace
}  // namespace cicada::http
