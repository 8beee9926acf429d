#include "cicada/kv/page_pool.h"

#include <gtest/gtest.h>

#include "cicada/kv/small_pool_for_test.h"

namespace cicada::kv {
namespace {

TEST(PagePool, APageIsFreeWhenItsLastHolderHasReleasedIt) {
  PagePool pool = small_pool(2);
  const PageId id = *pool.allocate();
  EXPECT_EQ(pool.num_holders(id), 1U);
  pool.retain(id);
  pool.retain(id);
  EXPECT_EQ(pool.num_holders(id), 3U);
  pool.release(id);
  pool.release(id);
  EXPECT_EQ(pool.num_free(), 1U);
  pool.check_conservation();
  pool.release(id);
  EXPECT_EQ(pool.num_free(), 2U);
  EXPECT_EQ(pool.num_holders(id), 0U);
  pool.check_conservation();
}

TEST(PagePool, DryPoolIsAnErrorWithItsSize) {
  PagePool pool = small_pool(1);
  ASSERT_TRUE(pool.allocate().has_value());
  const auto refused = pool.allocate();
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), Code::kOutOfCapacity);
  EXPECT_EQ(refused.error().message(), "all 1 KV pages of 16 tokens are in use");
}

// Gives back one page at a time, `pages.back()` first.
struct OnePageAtATime : PageReclaimer {
  explicit OnePageAtATime(PagePool& of) : pool(&of) {}
  bool reclaim() override {
    if (pages.empty()) return false;
    pool->release(pages.back());
    pages.pop_back();
    return true;
  }
  PagePool* pool;
  std::vector<PageId> pages;
};

TEST(PagePool, ADryPoolAsksForPagesBackAndOnlyThen) {
  PagePool pool = small_pool(3);
  OnePageAtATime reclaimer(pool);
  pool.set_reclaimer(&reclaimer);
  reclaimer.pages = {*pool.allocate(), *pool.allocate()};
  ASSERT_TRUE(pool.allocate().has_value());
  EXPECT_EQ(reclaimer.pages.size(), 2U);
  ASSERT_TRUE(pool.allocate().has_value());
  EXPECT_EQ(reclaimer.pages.size(), 1U);
  ASSERT_TRUE(pool.allocate().has_value());
  EXPECT_FALSE(pool.allocate().has_value());
  pool.check_conservation();
  pool.set_reclaimer(nullptr);
}

TEST(PagePool, OnlyThreePageSizesArePossibleAndAreNamed) {
  for (const std::size_t size : {16U, 32U, 64U}) EXPECT_TRUE(check_page_tokens(size).has_value());
  for (const std::size_t size : {0U, 1U, 15U, 48U, 128U}) {
    const auto refused = check_page_tokens(size);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().message(),
              fmt::format("KV pages of {} tokens: 16, 32 and 64 are possible", size));
  }
}

TEST(PagePoolDeath, WhatNobodyHoldsIsNeitherReleasedNorRetained) {
  PagePool pool = small_pool(1);
  const PageId id = *pool.allocate();
  pool.release(id);
  EXPECT_DEATH(pool.release(id), "a released page is held");
  EXPECT_DEATH(pool.retain(id), "a retained page is held");
}

}  // namespace
}  // namespace cicada::kv
