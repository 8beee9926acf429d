#include "cicada/kv/sequence.h"

#include <gtest/gtest.h>

#include "cicada/kv/small_pool_for_test.h"

namespace cicada::kv {
namespace {

TEST(Sequence, GrowsByPagesAndGivesThemBack) {
  PagePool pool = small_pool(4);
  {
    Sequence sequence(pool);
    ASSERT_TRUE(sequence.reserve(kSmallPage + 1).has_value());
    EXPECT_EQ(sequence.capacity_tokens(), 2 * kSmallPage);
    EXPECT_EQ(pool.num_free(), 2U);
    sequence.truncate(kSmallPage + 1);
    EXPECT_EQ(pool.num_free(), 2U);
    sequence.truncate(kSmallPage);
    EXPECT_EQ(pool.num_free(), 3U);
    pool.check_conservation();
  }
  EXPECT_EQ(pool.num_free(), 4U);
  pool.check_conservation();
}

TEST(Sequence, ADryPoolLeavesWhatItGot) {
  PagePool pool = small_pool(1);
  Sequence sequence(pool);
  const auto result = sequence.reserve(kSmallPage + 1);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code(), Code::kOutOfCapacity);
  EXPECT_EQ(sequence.capacity_tokens(), kSmallPage);
}

TEST(Sequence, AForkSharesEveryPageUntilOneOfThemWrites) {
  PagePool pool = small_pool(8);
  Sequence first = marked_sequence(pool, 3, 1);
  Sequence second = first.fork();
  EXPECT_EQ(pool.num_free(), 5U);
  // Positions 20 to 33 lie in the second and the third page.
  ASSERT_TRUE(second.make_writable(20, 34).has_value());
  EXPECT_EQ(pool.num_free(), 3U);
  EXPECT_EQ(second.pages()[0], first.pages()[0]);
  for (const unsigned page : {1U, 2U}) {
    EXPECT_NE(second.pages()[page], first.pages()[page]);
    EXPECT_TRUE(is_marked(pool, second.pages()[page], 1 + page));
    EXPECT_EQ(second.page_memory()[page], pool.page(second.pages()[page]));
    mark(pool, second.pages()[page], 77);
    EXPECT_TRUE(is_marked(pool, first.pages()[page], 1 + page));
  }
  // The other one now has these pages for itself.
  const std::vector<PageId> before(first.pages().begin(), first.pages().end());
  ASSERT_TRUE(first.make_writable(16, 48).has_value());
  EXPECT_TRUE(std::equal(before.begin(), before.end(), first.pages().begin()));
  pool.check_conservation();
}

TEST(Sequence, OnlyPagesOfTheRangeAreCopied) {
  for (const auto& [begin, end, first, last] : {std::array{0U, 0U, 0U, 0U},
                                                {0U, 1U, 0U, 1U},
                                                {15U, 17U, 0U, 2U},
                                                {16U, 32U, 1U, 2U},
                                                {31U, 32U, 1U, 2U},
                                                {32U, 500U, 2U, 3U},
                                                {48U, 64U, 3U, 3U}}) {
    PagePool pool = small_pool(8);
    const Sequence original = marked_sequence(pool, 3, 0);
    Sequence copy = original.fork();
    ASSERT_TRUE(copy.make_writable(begin, end).has_value());
    for (unsigned page = 0; page < 3; ++page) {
      EXPECT_EQ(copy.pages()[page] != original.pages()[page], page >= first && page < last)
          << begin << " to " << end << ", page " << page;
    }
  }
}

TEST(Sequence, ACopyWithoutRoomIsAnErrorAndNothingIsLost) {
  PagePool pool = small_pool(3);
  const Sequence original = marked_sequence(pool, 2, 5);
  {
    Sequence copy = original.fork();
    const auto result = copy.make_writable(0, 32);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code(), Code::kOutOfCapacity);
    EXPECT_NE(copy.pages()[0], original.pages()[0]);
    EXPECT_EQ(copy.pages()[1], original.pages()[1]);
    EXPECT_TRUE(is_marked(pool, copy.pages()[0], 5));
    pool.check_conservation();
  }
  EXPECT_EQ(pool.num_free(), 1U);
  EXPECT_TRUE(is_marked(pool, original.pages()[1], 6));
}

TEST(Sequence, WhatIsExpectedIsGrownIntoWithoutMoving) {
  PagePool pool = small_pool(8);
  Sequence sequence(pool);
  sequence.expect(8 * kSmallPage);
  ASSERT_TRUE(sequence.reserve(1).has_value());
  std::byte* const* table = sequence.page_memory();
  ASSERT_TRUE(sequence.reserve(8 * kSmallPage).has_value());
  EXPECT_EQ(sequence.page_memory(), table);
}

TEST(SequenceDeath, ASharedPageIsNotWritten) {
  PagePool pool = small_pool(2);
  const Sequence original = marked_sequence(pool, 1, 0);
  const Sequence copy = original.fork();
  EXPECT_DEATH(copy.slab(pool.layout().head(0, 0), 0), "has one holder");
}

}  // namespace
}  // namespace cicada::kv
