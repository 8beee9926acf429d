#include "cicada/kv/prefix_tree.h"

#include <gtest/gtest.h>

#include <list>
#include <random>

#include "cicada/kv/small_pool_for_test.h"

namespace cicada::kv {
namespace {

using Ids = std::vector<TokenId>;

class PrefixTreeTest : public testing::Test {
 protected:
  ~PrefixTreeTest() override {
    tree_.check_links();
    pool_.check_conservation();
  }

  // Puts pages of a sequence that is then gone into the tree: only the tree holds them.
  std::vector<PageId> insert(const Ids& ids, std::string_view salt = "") {
    const Sequence sequence = marked_sequence(pool_, ids.size() / kSmallPage, 0);
    tree_.insert(salt, ids, sequence.pages());
    return {sequence.pages().begin(), sequence.pages().end()};
  }

  std::size_t known(const Ids& ids, std::string_view salt = "") {
    return tree_.find(salt, ids).tokens;
  }

  PagePool pool_ = small_pool(8);
  PrefixTree tree_{pool_};
};

TEST_F(PrefixTreeTest, FindsTheLongestKnownBeginningAndItsPages) {
  const Ids text = ids_from(0, 64);
  EXPECT_EQ(known(text), 0U);
  const std::vector<PageId> pages = insert(Ids(text.begin(), text.begin() + 48));
  EXPECT_EQ(pool_.num_free(), 5U);
  const PrefixMatch match = tree_.find("", text);
  EXPECT_EQ(match.tokens, 48U);
  EXPECT_EQ(match.pages, pages);
  EXPECT_EQ(known(Ids(text.begin(), text.begin() + 32)), 32U);
  EXPECT_EQ(known({}), 0U);
}

TEST_F(PrefixTreeTest, APageThatMatchesInPartIsFoundWithHowFar) {
  const Ids text = ids_from(100, 48);
  const std::vector<PageId> pages = insert(text);
  for (const std::size_t same : {0U, 1U, 15U, 16U, 17U, 30U, 47U}) {
    const PrefixMatch match = tree_.find("", diverging(text, same));
    EXPECT_EQ(match.tokens, same);
    EXPECT_EQ(match.pages.size(), (same + 15) / 16);
    EXPECT_TRUE(std::equal(match.pages.begin(), match.pages.end(), pages.begin()));
    EXPECT_EQ(known(Ids(text.begin(), text.begin() + static_cast<int>(same))), same);
  }
}

TEST_F(PrefixTreeTest, OfManyBranchesTheClosestIsFound) {
  const Ids text = ids_from(100, 16);
  std::vector<std::pair<std::size_t, PageId>> branches;
  for (const std::size_t same : {3U, 9U, 14U, 7U, 0U}) {
    branches.emplace_back(same, insert(diverging(text, same))[0]);
  }
  // One that differs upwards where the others differ downwards.
  Ids above = text;
  above[12] = TokenId(1000);
  branches.emplace_back(12, insert(above)[0]);
  for (const auto& [same, page] : branches) {
    // Agrees with this branch up to position `same` and a little further than with any other.
    Ids ids = same == 12 ? above : diverging(text, same);
    ids[15] = TokenId(7777);
    const PrefixMatch match = tree_.find("", ids);
    EXPECT_EQ(match.tokens, 15U) << same;
    ASSERT_EQ(match.pages.size(), 1U);
    EXPECT_EQ(match.pages[0], page) << same;
  }
  EXPECT_EQ(known(text), 14U);
}

TEST_F(PrefixTreeTest, TextsOfAnotherSaltAreNotFound) {
  const Ids text = ids_from(0, 32);
  insert(text, "a");
  EXPECT_EQ(known(text), 0U);
  EXPECT_EQ(known(text, "b"), 0U);
  EXPECT_EQ(known(text, "a"), 32U);
  insert(text, "b");
  EXPECT_EQ(tree_.num_pages(), 4U);
}

TEST_F(PrefixTreeTest, WhatIsKnownKeepsItsPage) {
  const Ids text = ids_from(0, 32);
  const std::vector<PageId> pages = insert(text);
  const Sequence again = marked_sequence(pool_, 2, 9);
  EXPECT_EQ(tree_.insert("", text, again.pages()), 0U);
  EXPECT_EQ(tree_.find("", text).pages, pages);
  EXPECT_EQ(tree_.num_pages(), 2U);
  EXPECT_EQ(pool_.num_holders(again.pages()[0]), 1U);
}

// The same ids under another page are another page: their keys saw another text.
TEST_F(PrefixTreeTest, EqualPagesBehindDifferentTextsAreApart) {
  Ids first = ids_from(0, 32);
  Ids second = diverging(first, 0);
  std::copy(first.begin() + 16, first.end(), second.begin() + 16);
  const PageId page = insert(first)[1];
  EXPECT_EQ(known(second), 0U);
  EXPECT_NE(insert(second)[1], page);
  EXPECT_EQ(tree_.find("", first).pages[1], page);
}

TEST_F(PrefixTreeTest, TheLeastRecentlyUsedLeafGoesFirst) {
  const Ids a = ids_from(0, 48);
  const Ids b = diverging(a, 16);  // shares the first page with a
  const Ids c = ids_from(500, 48);
  insert(a);
  insert(b);
  insert(c);
  EXPECT_EQ(pool_.num_free(), 0U);
  EXPECT_EQ(known(a), 48U);  // used again: b's own pages are now the oldest, then c's
  const auto expect_after = [&](std::size_t of_a, std::size_t of_b, std::size_t of_c) {
    ASSERT_TRUE(pool_.allocate().has_value());
    tree_.check_links();
    // Looked at without being used: a fresh tree would be needed to ask find().
    EXPECT_EQ(tree_.num_pages(), (of_a + of_b + of_c) / kSmallPage);
  };
  expect_after(48, 16, 48);
  EXPECT_EQ(tree_.num_evictions(), 1U);
  expect_after(48, 0, 48);
  expect_after(48, 0, 32);
  expect_after(48, 0, 16);
  expect_after(48, 0, 0);
  EXPECT_EQ(known(c), 0U);
  EXPECT_EQ(known(b), 16U);
  EXPECT_EQ(known(a), 48U);
  EXPECT_EQ(tree_.num_evictions(), 5U);
}

TEST_F(PrefixTreeTest, WhatOthersHoldStaysAndADryPoolIsStillAnError) {
  const Ids a = ids_from(0, 64);
  const Ids b = ids_from(500, 64);
  insert(a);
  insert(b);
  {
    Sequence user(pool_);
    const PrefixMatch match = tree_.find("", a);
    user.share(std::span(match.pages).first(2));
    EXPECT_EQ(known(b), 64U);  // a is the older one
    for (int i = 0; i < 6; ++i) ASSERT_TRUE(pool_.allocate().has_value()) << i;
    EXPECT_EQ(known(a), 32U);
    EXPECT_EQ(known(b), 0U);
    EXPECT_FALSE(pool_.allocate().has_value());
  }
  EXPECT_TRUE(pool_.allocate().has_value());
  EXPECT_EQ(known(a), 16U);
}

TEST_F(PrefixTreeTest, ATreeThatGoesGivesItsPagesBack) {
  PagePool pool = small_pool(4);
  {
    PrefixTree tree(pool);
    const Sequence sequence = marked_sequence(pool, 3, 0);
    tree.insert("s", ids_from(0, 48), sequence.pages());
  }
  EXPECT_EQ(pool.num_free(), 4U);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(pool.allocate().has_value());
  EXPECT_FALSE(pool.allocate().has_value());  // nobody is asked any more
}

// Twenty thousand pages in one chain: nothing recurses over it.
TEST(PrefixTree, ADeepTextIsDroppedWithoutDeepRecursion) {
  constexpr std::size_t kPages = 20000;
  PagePool pool = small_pool(kPages);
  PrefixTree tree(pool);
  {
    Sequence sequence(pool);
    ASSERT_TRUE(sequence.reserve(kPages * kSmallPage).has_value());
    tree.insert("", ids_from(0, kPages * kSmallPage), sequence.pages());
  }
  EXPECT_EQ(tree.find("", ids_from(0, kPages * kSmallPage)).pages.size(), kPages);
  ASSERT_TRUE(pool.allocate().has_value());
  EXPECT_EQ(tree.num_pages(), kPages - 1);
}

// Against a model that keeps whole texts: what is found is never more than what was put in, and
// everything is conserved.
TEST(PrefixTree, RandomUseKeepsItsInvariants) {
  PagePool pool = small_pool(24);
  PrefixTree tree(pool);
  std::mt19937 random(7);
  std::vector<Ids> seen;
  std::list<Sequence> users;
  for (int round = 0; round < 2000; ++round) {
    Ids text = ids_from(0, 16 * (1 + random() % 4));
    for (std::size_t page = 0; page < text.size() / 16; ++page) {
      text[page * 16 + random() % 16] = TokenId(static_cast<std::int32_t>(900 + random() % 2));
    }
    const PrefixMatch match = tree.find("", text);
    std::size_t most = 0;
    for (const Ids& other : seen) {
      const auto end = std::mismatch(text.begin(), text.end(), other.begin(), other.end()).first;
      most = std::max(most, static_cast<std::size_t>(end - text.begin()));
    }
    ASSERT_LE(match.tokens, most);
    Sequence sequence(pool);
    sequence.share(match.pages);
    if (users.size() > 3) users.pop_front();
    if (!sequence.make_writable(match.tokens, text.size()) || !sequence.reserve(text.size())) {
      users.clear();
      continue;
    }
    tree.insert("", text, sequence.pages());
    seen.push_back(text);
    ASSERT_EQ(tree.find("", text).tokens, text.size());
    if (random() % 2 == 0) users.push_back(std::move(sequence));
    tree.check_links();
    pool.check_conservation();
    ASSERT_LE(tree.num_pages(), pool.num_pages());
  }
  EXPECT_GT(tree.num_evictions(), 100U);
}

}  // namespace
}  // namespace cicada::kv
