#include "cicada/engine/scheduler.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <set>

namespace cicada::engine {
namespace {

// Holds pages by counting them; nothing is shared.
class CountedPages : public KvHolder {
 public:
  CountedPages(std::size_t pages, std::size_t page_tokens) : free_(pages), size_(page_tokens) {}

  void expect(RequestId id, std::size_t tokens) { known_[id] = tokens; }
  void cache(RequestId id, std::size_t tokens) { cached_[id] = tokens; }
  void wait_for(RequestId id, RequestId other) { waits_[id] = other; }

  Admission admit(RequestId id, std::size_t spare_pages) override {
    if (const auto other = waits_.find(id);
        other != waits_.end() && held_.contains(other->second)) {
      return {.room = Room::kLater};
    }
    const std::size_t pages = pages_of(known_[id]);
    if (pages + spare_pages > free_) return {.room = Room::kNo};
    free_ -= pages;
    held_[id] = pages;
    return {.room = Room::kYes, .cached_tokens = cached_[id]};
  }
  bool grow(RequestId id, std::size_t tokens) override {
    known_[id] = tokens;
    const std::size_t more = pages_of(tokens) - held_[id];
    if (more > free_) return false;
    free_ -= more;
    held_[id] += more;
    return true;
  }
  void release(RequestId id) override {
    free_ += held_.at(id);
    held_.erase(id);
  }

  std::size_t num_free() const { return free_; }
  bool holds(RequestId id) const { return held_.contains(id); }

 private:
  std::size_t pages_of(std::size_t tokens) const { return (tokens + size_ - 1) / size_; }

  std::size_t free_;
  std::size_t size_;
  std::map<RequestId, std::size_t> known_, cached_, held_;
  std::map<RequestId, RequestId> waits_;
};

class SchedulerTest : public testing::Test {
 protected:
  explicit SchedulerTest(std::size_t pages = 1000, SchedulerLimits limits = {})
      : pages_(pages, 16), scheduler_(limits, pages_) {}

  void submit(RequestId id, std::size_t tokens, const std::string& tenant = "a",
              std::int32_t priority = 0, std::size_t emitted = 0) {
    pages_.expect(id, tokens + emitted);
    scheduler_.submit({.id = id,
                       .prompt_tokens = tokens,
                       .emitted_tokens = emitted,
                       .tenant = tenant,
                       .priority = priority});
  }

  // A step after which every request that wanted a token has one.
  PlannedStep step(std::size_t chunk_rows) {
    PlannedStep plan = scheduler_.plan(chunk_rows);
    scheduler_.complete();
    for (const Slice& slice : plan.slices) {
      if (slice.wants_token) scheduler_.add_token(slice.id);
    }
    return plan;
  }

  static std::optional<Slice> slice_of(const PlannedStep& plan, RequestId id) {
    for (const Slice& slice : plan.slices) {
      if (slice.id == id) return slice;
    }
    return std::nullopt;
  }

  CountedPages pages_;
  Scheduler scheduler_;
};

TEST_F(SchedulerTest, CutsAPromptIntoChunksAndThenAnswers) {
  submit(1, 10);
  PlannedStep plan = step(4);
  ASSERT_EQ(plan.slices.size(), 1U);
  EXPECT_EQ(plan.slices[0].count, 4U);
  EXPECT_TRUE(plan.slices[0].is_prefill);
  EXPECT_FALSE(plan.slices[0].wants_token);
  step(4);
  plan = step(4);
  EXPECT_EQ(plan.slices[0].first, 8U);
  EXPECT_EQ(plan.slices[0].count, 2U);
  EXPECT_TRUE(plan.slices[0].wants_token);
  plan = step(4);
  EXPECT_EQ(plan.slices[0].first, 10U);
  EXPECT_FALSE(plan.slices[0].is_prefill);
  EXPECT_EQ(plan.num_answers, 1U);
  EXPECT_EQ(plan.chunk_rows, 0U);
}

TEST_F(SchedulerTest, EveryAnswerGetsItsTokenBesideALongPrompt) {
  submit(1, 1);
  submit(2, 1);
  step(8);
  submit(3, 1000);
  for (int i = 0; i < 20; ++i) {
    const PlannedStep plan = step(8);
    EXPECT_EQ(plan.num_answers, 2U);
    EXPECT_EQ(slice_of(plan, 3)->count, 8U);
    EXPECT_EQ(plan.slices[0].id, 3U) << "prompts come first";
  }
}

TEST_F(SchedulerTest, AShortPromptPassesALongOneThatKeepsHalf) {
  submit(1, 1000);
  step(16);
  submit(2, 6);
  const PlannedStep plan = step(16);
  EXPECT_EQ(slice_of(plan, 2)->count, 6U);
  EXPECT_EQ(slice_of(plan, 1)->count, 10U);
  for (RequestId id = 3; id < 10; ++id) submit(id, 100);
  EXPECT_EQ(slice_of(step(16), 1)->count, 8U);
}

TEST_F(SchedulerTest, AReplayComputesWhatWasEmittedInItsOwnRole) {
  submit(1, 10, "a", 0, 7);
  PlannedStep plan = step(100);
  EXPECT_EQ(plan.slices[0].count, 10U);
  EXPECT_FALSE(plan.slices[0].wants_token);
  plan = step(100);
  EXPECT_FALSE(plan.slices[0].is_prefill);
  EXPECT_EQ(plan.slices[0].first, 10U);
  EXPECT_EQ(plan.slices[0].count, 7U);
  EXPECT_TRUE(plan.slices[0].wants_token);
}

TEST_F(SchedulerTest, IsReplayingUntilTheNextToken) {
  submit(1, 10, "a", 0, 7);
  submit(2, 10);
  EXPECT_TRUE(scheduler_.is_replaying());
  step(100);
  EXPECT_TRUE(scheduler_.is_replaying());
  step(100);
  EXPECT_FALSE(scheduler_.is_replaying());
}

TEST_F(SchedulerTest, CachedTokensAreNotComputed) {
  submit(1, 100);
  pages_.cache(1, 96);
  const PlannedStep plan = step(100);
  EXPECT_EQ(plan.slices[0].first, 96U);
  EXPECT_EQ(plan.admitted[0].cached_tokens, 96U);
}

TEST_F(SchedulerTest, PriorityGoesBeforeAge) {
  scheduler_ = Scheduler({.max_running = 1}, pages_);
  submit(1, 4);
  submit(2, 4, "a", 5);
  EXPECT_EQ(step(100).admitted[0].id, 2U);
}

TEST_F(SchedulerTest, TheTenantThatHadLeastGoesFirst) {
  scheduler_ = Scheduler({.max_running = 1}, pages_);
  for (RequestId id = 1; id <= 6; ++id) submit(id, 50, "greedy");
  submit(7, 50, "modest");
  submit(8, 50, "modest");
  std::vector<RequestId> order;
  for (int i = 0; i < 8; ++i) {
    const PlannedStep plan = step(100);
    ASSERT_EQ(plan.admitted.size(), 1U);
    order.push_back(plan.admitted[0].id);
    scheduler_.remove(order.back());
  }
  EXPECT_EQ(order, (std::vector<RequestId>{1, 7, 2, 8, 3, 4, 5, 6}));
}

TEST_F(SchedulerTest, ATenantThatWasAwayHasNoClaimToThatTime) {
  submit(1, 50, "steady");
  for (int i = 0; i < 100; ++i) step(100);
  scheduler_.remove(1);
  submit(2, 50, "steady");
  submit(3, 50, "new");
  scheduler_.remove(2);
  submit(4, 50, "steady");
  // Neither is ahead: the older goes first.
  EXPECT_EQ(step(100).admitted[0].id, 3U);
}

TEST_F(SchedulerTest, WhoWaitsForAnothersPrefixLetsOthersPass) {
  submit(1, 100);
  step(10);
  submit(2, 100);
  submit(3, 100);
  pages_.wait_for(2, 1);
  PlannedStep plan = step(10);
  ASSERT_EQ(plan.admitted.size(), 1U);
  EXPECT_EQ(plan.admitted[0].id, 3U);
  scheduler_.remove(1);
  EXPECT_EQ(step(10).admitted[0].id, 2U);
}

TEST_F(SchedulerTest, RemovesInEveryState) {
  scheduler_ = Scheduler({.max_running = 2}, pages_);
  submit(1, 100);
  submit(2, 1);
  submit(3, 1);
  step(10);
  step(10);
  for (const RequestId id : {1U, 2U, 3U}) EXPECT_TRUE(scheduler_.remove(id));
  EXPECT_FALSE(scheduler_.remove(1));
  EXPECT_EQ(scheduler_.num_running() + scheduler_.num_waiting(), 0U);
  EXPECT_EQ(pages_.num_free(), 1000U);
  EXPECT_TRUE(step(10).slices.empty());
}

TEST_F(SchedulerTest, APausedAnswerGetsNoTokens) {
  submit(1, 1);
  submit(2, 1);
  step(10);
  scheduler_.pause(1, true);
  EXPECT_FALSE(slice_of(step(10), 1).has_value());
  scheduler_.pause(1, false);
  EXPECT_TRUE(slice_of(step(10), 1).has_value());
}

class TightSchedulerTest : public SchedulerTest {
 protected:
  TightSchedulerTest() : SchedulerTest(4) {}
};

TEST_F(TightSchedulerTest, WhoFindsNoRoomIsPreemptedItselfAndComesBack) {
  submit(1, 16);
  submit(2, 15);
  step(100);  // one page each; two are free
  for (int i = 0; i < 10; ++i) step(100);
  // Both have grown to two pages. The next to need one is the first.
  PlannedStep plan;
  int steps = 0;
  do {
    plan = step(100);
    ASSERT_LT(++steps, 50);
  } while (plan.preempted.empty());
  ASSERT_EQ(plan.preempted.size(), 1U);
  const RequestId victim = plan.preempted[0];
  const RequestId survivor = victim == 1 ? 2 : 1;
  EXPECT_TRUE(slice_of(plan, survivor).has_value());
  EXPECT_FALSE(pages_.holds(victim));
  EXPECT_EQ(scheduler_.num_preemptions(), 1U);
  submit(3, 1);
  scheduler_.remove(survivor);
  plan = step(100);
  ASSERT_FALSE(plan.admitted.empty());
  EXPECT_EQ(plan.admitted[0].id, victim) << "before those that never ran";
  EXPECT_TRUE(plan.admitted[0].is_resumed);
}

TEST_F(TightSchedulerTest, WhoCanNeverHaveRoomFails) {
  submit(1, 1000);
  submit(2, 1);
  const PlannedStep plan = step(100);
  ASSERT_EQ(plan.failed.size(), 1U);
  EXPECT_EQ(plan.failed[0], 1U);
  EXPECT_TRUE(slice_of(plan, 2).has_value());
  int steps = 0;
  while (step(100).failed.empty()) ASSERT_LT(++steps, 100);  // the answer fills all pages
  EXPECT_EQ(pages_.num_free(), 4U);
}

TEST_F(SchedulerTest, ARandomLifeLosesNothing) {
  const std::uint32_t seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  CountedPages pages(40, 16);
  Scheduler scheduler({.max_running = 6, .max_rows = 32}, pages);
  std::map<RequestId, int> tokens_left;
  const auto take = [&](const PlannedStep& plan) {
    for (const RequestId id : plan.failed) tokens_left.erase(id);
    scheduler.complete();
    for (const Slice& slice : plan.slices) {
      if (!slice.wants_token) continue;
      if (tokens_left[slice.id]-- > 0) {
        scheduler.add_token(slice.id);
      } else {
        scheduler.remove(slice.id);
        tokens_left.erase(slice.id);
      }
    }
  };
  RequestId next = 1;
  for (int i = 0; i < 3000; ++i) {
    if (random() % 4 == 0) {
      const std::size_t prompt = 1 + random() % 90;
      const std::size_t emitted = random() % 3 == 0 ? random() % 20 : 0;
      pages.expect(next, prompt + emitted);
      tokens_left[next] = static_cast<int>(random() % 60);
      scheduler.submit({.id = next++,
                        .prompt_tokens = prompt,
                        .emitted_tokens = emitted,
                        .tenant = std::string(1, static_cast<char>('a' + random() % 3)),
                        .priority = static_cast<std::int32_t>(random() % 2)});
    }
    if (random() % 20 == 0 && !tokens_left.empty()) {
      auto it = tokens_left.begin();
      std::advance(it, random() % tokens_left.size());
      EXPECT_TRUE(scheduler.remove(it->first));
      tokens_left.erase(it);
    }
    const std::size_t budget = 1 + random() % 30;
    const PlannedStep plan = scheduler.plan(budget);
    EXPECT_LE(plan.chunk_rows, budget);
    EXPECT_LE(plan.chunk_rows + plan.num_answers, 32U);
    EXPECT_LE(scheduler.num_running(), 6U);
    std::set<RequestId> seen;
    for (const Slice& slice : plan.slices) {
      EXPECT_TRUE(seen.insert(slice.id).second);
      EXPECT_TRUE(pages.holds(slice.id));
      EXPECT_GT(slice.count, 0U);
    }
    take(plan);
    EXPECT_EQ(scheduler.num_running() + scheduler.num_waiting(), tokens_left.size());
  }
  for (int i = 0; !tokens_left.empty(); ++i) {
    ASSERT_LT(i, 100000) << "everything ends";
    const PlannedStep plan = scheduler.plan(16);
    ASSERT_FALSE(plan.slices.empty() && plan.failed.empty()) << "something can always be done";
    take(plan);
  }
  EXPECT_EQ(pages.num_free(), 40U);
}

}  // namespace
}  // namespace cicada::engine
