#include "cicada/platform/work_sharing.h"

#include <gtest/gtest.h>

namespace cicada::platform {
namespace {

// How often each unit of `count` was taken, and by how many calls, when one worker takes all.
std::vector<int> take_all(WorkSharing& work, std::size_t worker, std::size_t count,
                          std::size_t most) {
  std::vector<int> times(count, 0);
  while (true) {
    const Range range = work.take(worker, count, most);
    if (range.begin == range.end) return times;
    EXPECT_LE(range.end - range.begin, most);
    for (std::size_t i = range.begin; i < range.end; ++i) ++times[i];
  }
}

TEST(WorkSharing, OneWorkerAloneTakesTheSharesOfAll) {
  for (const std::size_t count : {0U, 1U, 2U, 7U, 100U}) {
    WorkSharing work(3);
    work.open(1);
    EXPECT_EQ(take_all(work, 1, count, 4), std::vector<int>(count, 1)) << count;
  }
}

TEST(WorkSharing, AWorkerBeginsWithItsOwnShare) {
  WorkSharing work(2);
  work.open(0);
  work.open(1);
  const Range own = partition(20, 1, 2);
  EXPECT_EQ(work.take(1, 20, 4).begin, own.begin);
  EXPECT_EQ(work.take(0, 20, 4).begin, 0U);
}

TEST(WorkSharing, PiecesShrinkTowardsTheEndOfAShare) {
  WorkSharing work(1);
  work.open(0);
  std::vector<std::size_t> pieces;
  for (Range range = work.take(0, 9, 4); range.begin != range.end; range = work.take(0, 9, 4)) {
    pieces.push_back(range.end - range.begin);
  }
  EXPECT_EQ(pieces, (std::vector<std::size_t>{4, 2, 1, 1, 1}));
}

TEST(WorkSharing, EveryUnitOfEveryRoundIsTakenOnce) {
  constexpr std::size_t kWorkers = 4;
  constexpr std::size_t kRounds = 300;
  constexpr std::size_t kUnits = 37;
  ThreadPool pool(kWorkers);
  WorkSharing work(pool.size());
  std::vector<std::atomic<int>> times(kRounds * kUnits);
  std::vector<std::atomic<int>> tickets(kRounds * kUnits);
  pool.run([&](std::size_t worker) {
    for (std::size_t round = 0; round < kRounds; ++round) {
      work.open(worker);
      for (Range range = work.take(worker, kUnits, 4); range.begin != range.end;
           range = work.take(worker, kUnits, 4)) {
        for (std::size_t i = range.begin; i < range.end; ++i) ++times[round * kUnits + i];
      }
      for (std::size_t ticket = work.ticket(worker); ticket < kUnits;
           ticket = work.ticket(worker)) {
        ++tickets[round * kUnits + ticket];
      }
      pool.barrier().wait();
    }
  });
  for (std::size_t i = 0; i < times.size(); ++i) {
    EXPECT_EQ(times[i], 1) << "unit " << i % kUnits << " of round " << i / kUnits;
    EXPECT_EQ(tickets[i], 1) << "ticket " << i % kUnits << " of round " << i / kUnits;
  }
}

}  // namespace
}  // namespace cicada::platform
