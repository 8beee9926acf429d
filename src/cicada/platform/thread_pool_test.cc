#include "cicada/platform/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>

namespace cicada::platform {
namespace {

TEST(ThreadPool, EveryWorkerRunsOnceARegion) {
  ThreadPool pool(4);
  for (int region = 0; region < 200; ++region) {
    std::vector<int> calls(4, 0);
    pool.run([&](std::size_t idx) { ++calls[idx]; });
    EXPECT_EQ(calls, std::vector<int>(4, 1));
  }
}

TEST(ThreadPool, WritesBeforeABarrierAreSeenAfterIt) {
  ThreadPool pool(3);
  std::vector<int> slots(3, 0);
  std::vector<int> sums(3, 0);
  pool.run([&](std::size_t idx) {
    for (int round = 1; round <= 100; ++round) {
      slots[idx] = round;
      pool.barrier().wait();
      sums[idx] += slots[0] + slots[1] + slots[2];
      pool.barrier().wait();
    }
  });
  EXPECT_EQ(sums, std::vector<int>(3, 3 * 5050));
}

// More workers than any core count: nobody spins, everybody sleeps and is woken.
TEST(ThreadPool, ManyMoreWorkersThanCoresMeetAtTheirBarriers) {
  constexpr std::size_t kWorkers = 64;
  ThreadPool pool(kWorkers);
  std::vector<std::size_t> slots(kWorkers, 0);
  std::atomic<std::size_t> wrong{0};
  for (std::size_t region = 1; region <= 5; ++region) {
    pool.run([&](std::size_t idx) {
      for (std::size_t round = 1; round <= 4; ++round) {
        slots[idx] = region * 10 + round;
        pool.barrier().wait();
        if (slots[(idx + 1) % kWorkers] != region * 10 + round) ++wrong;
        pool.barrier().wait();
      }
    });
  }
  EXPECT_EQ(wrong, 0U);
}

TEST(ThreadPool, SleepersWakeWhenTheSignalIsSet) {
  for (const bool spin : {true, false}) {
    Signal signal;
    std::thread waiter([&] { signal.wait_while(0, spin); });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // long enough to be asleep
    signal.set(7);
    waiter.join();
    EXPECT_EQ(signal.value(), 7U);
    signal.wait_while(0, spin);  // it has changed already
  }
}

TEST(ThreadPoolDeathTest, WorksWithTheThreadsThatTheSystemGives) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer needs address space without limit";
#endif
  // In a process of its own: too little address space for sixty more stacks.
  EXPECT_EXIT(
      {
        rlimit limit{};
        ::getrlimit(RLIMIT_AS, &limit);
        limit.rlim_cur = rlim_t{200} << 20;
        ::setrlimit(RLIMIT_AS, &limit);
        ThreadPool pool(64);
        std::atomic<std::size_t> calls{0};
        pool.run([&](std::size_t) {
          ++calls;
          pool.barrier().wait();
        });
        std::_Exit(calls == pool.size() && pool.size() < 64 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(ThreadPool, OneWorkerIsTheCaller) {
  ThreadPool pool(1);
  std::thread::id id;
  pool.run([&](std::size_t) { id = std::this_thread::get_id(); });
  EXPECT_EQ(id, std::this_thread::get_id());
}

TEST(Partition, CoversEverythingOnce) {
  for (const std::size_t count : {0U, 1U, 7U, 36U}) {
    std::size_t next = 0;
    for (std::size_t idx = 0; idx < 3; ++idx) {
      const Range range = partition(count, idx, 3);
      EXPECT_EQ(range.begin, next);
      next = range.end;
    }
    EXPECT_EQ(next, count);
  }
}

}  // namespace
}  // namespace cicada::platform
