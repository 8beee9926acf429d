#include "cicada/kv/prefix_cache.h"

#include <gtest/gtest.h>

#include "cicada/kv/small_pool_for_test.h"
#include "cicada/platform/test_folder.h"

namespace cicada::kv {
namespace {

using Ids = std::vector<TokenId>;

class PrefixCacheTest : public testing::Test {
 protected:
  std::optional<PrefixStore> store() {
    auto made = PrefixStore::open(
        small_layout(), {.folder = folder_.path() + "/cache",
                         .model_identity = "model",
                         .numerics_id = "numerics",
                         .log = [this](std::string_view line) { lines_.emplace_back(line); }});
    EXPECT_TRUE(made.has_value());
    return std::move(*made);
  }

  // Pages of `kText`, marked 10, 11, …, are remembered and saved by a cache that is then gone.
  void save_text() {
    PagePool pool = small_pool(8);
    PrefixCache cache(pool, store());
    const Sequence sequence = marked_sequence(pool, kText.size() / kSmallPage, 10);
    cache.add(sequence, "", kText);
    cache.save(sequence, "", kText);
  }

  static inline const Ids kText = ids_from(0, 64);
  const platform::TestFolder folder_;
  std::vector<std::string> lines_;
};

TEST_F(PrefixCacheTest, AnEmptySequenceGetsTheLongestKnownBeginning) {
  PagePool pool = small_pool(8);
  PrefixCache cache(pool);
  cache.add(marked_sequence(pool, 4, 10), "", kText);
  Sequence sequence(pool);
  EXPECT_EQ(cache.extend(sequence, 0, "", diverging(kText, 40)), 40U);
  ASSERT_EQ(sequence.pages().size(), 3U);
  for (unsigned i = 0; i < 3; ++i) EXPECT_TRUE(is_marked(pool, sequence.pages()[i], 10 + i));
  // What is written from there on is the sequence's own; the text stays known as it was.
  ASSERT_TRUE(sequence.make_writable(40, 64).has_value());
  EXPECT_TRUE(is_marked(pool, sequence.pages()[2], 12));
  mark(pool, sequence.pages()[2], 99);
  Sequence other(pool);
  EXPECT_EQ(cache.extend(other, 0, "", kText), 64U);
  EXPECT_TRUE(is_marked(pool, other.pages()[2], 12));
}

TEST_F(PrefixCacheTest, ASequenceThatHasMoreKeepsIt) {
  PagePool pool = small_pool(8);
  PrefixCache cache(pool);
  cache.add(marked_sequence(pool, 2, 10), "", std::span(kText).first(32));
  Sequence sequence = marked_sequence(pool, 3, 50);
  EXPECT_EQ(cache.extend(sequence, 40, "", kText), 40U);
  EXPECT_TRUE(is_marked(pool, sequence.pages()[0], 50));
  sequence.truncate(31);
  EXPECT_EQ(cache.extend(sequence, 31, "", kText), 32U);
  EXPECT_TRUE(is_marked(pool, sequence.pages()[0], 10));
}

TEST_F(PrefixCacheTest, ANewProcessFindsWhatWasSaved) {
  save_text();
  PagePool pool = small_pool(8);
  PrefixCache cache(pool, store());
  Sequence sequence(pool);
  EXPECT_EQ(cache.extend(sequence, 0, "", kText), 64U);
  ASSERT_EQ(sequence.pages().size(), 4U);
  for (unsigned i = 0; i < 4; ++i) EXPECT_TRUE(is_marked(pool, sequence.pages()[i], 10 + i));
  EXPECT_EQ(cache.counters().loaded_pages, 4U);
  // They are in memory now.
  Sequence second(pool);
  EXPECT_EQ(cache.extend(second, 0, "", kText), 64U);
  EXPECT_EQ(second.pages()[3], sequence.pages()[3]);
  EXPECT_EQ(cache.counters().loaded_pages, 4U);
  EXPECT_EQ(cache.counters().cached_pages, 4U);
  pool.check_conservation();
}

TEST_F(PrefixCacheTest, OnlyWholePagesOfTheTextAreLoaded) {
  save_text();
  for (const std::size_t length : {15U, 16U, 47U, 63U}) {
    PagePool pool = small_pool(8);
    PrefixCache cache(pool, store());
    Sequence sequence(pool);
    const std::size_t whole = length / 16 * 16;
    EXPECT_EQ(cache.extend(sequence, 0, "", std::span(kText).first(length)), whole);
    EXPECT_EQ(cache.extend(sequence, whole, "", diverging(kText, whole + 1)),
              whole == 0 ? 0 : whole);
  }
}

TEST_F(PrefixCacheTest, PagesOnDiskGoOnWhereThoseInMemoryEnd) {
  save_text();
  PagePool pool = small_pool(8);
  PrefixCache cache(pool, store());
  // Of another text, which has its first page and a half in common: the rest of that page is wrong.
  cache.add(marked_sequence(pool, 2, 10), "",
            diverging(Ids(kText.begin(), kText.begin() + 32), 24));
  Sequence sequence(pool);
  EXPECT_EQ(cache.extend(sequence, 0, "", kText), 64U);
  EXPECT_EQ(cache.counters().loaded_pages, 3U);
  for (unsigned i = 0; i < 4; ++i) EXPECT_TRUE(is_marked(pool, sequence.pages()[i], 10 + i));
}

TEST_F(PrefixCacheTest, AnotherSaltFindsNothing) {
  save_text();
  PagePool pool = small_pool(8);
  PrefixCache cache(pool, store());
  Sequence sequence(pool);
  EXPECT_EQ(cache.extend(sequence, 0, "salt", kText), 0U);
  EXPECT_TRUE(sequence.pages().empty());
}

TEST_F(PrefixCacheTest, ADamagedPageEndsWhatIsReusedAndIsWrittenAnew) {
  save_text();
  PagePool pool = small_pool(8);
  std::optional<PrefixStore> made = store();
  std::string key = *made->root_key("");
  for (std::size_t page = 0; page < 3; ++page) {
    key = *PrefixStore::next_key(key, std::span(kText).subspan(page * 16, 16));
  }
  std::ofstream(made->path(key)) << "damaged";
  PrefixCache cache(pool, std::move(made));
  Sequence sequence(pool);
  EXPECT_EQ(cache.extend(sequence, 0, "", kText), 32U);
  EXPECT_EQ(lines_.size(), 1U);
  EXPECT_EQ(pool.num_free(), 6U);  // the page it was read into is free again
  ASSERT_TRUE(sequence.reserve(64).has_value());
  mark(pool, sequence.pages()[2], 12);
  mark(pool, sequence.pages()[3], 13);
  cache.save(sequence, "", kText);
  EXPECT_EQ(lines_.size(), 1U);
  PagePool second_pool = small_pool(8);
  PrefixCache second(second_pool, store());
  Sequence again(second_pool);
  EXPECT_EQ(second.extend(again, 0, "", kText), 64U);
  EXPECT_TRUE(is_marked(second_pool, again.pages()[2], 12));
}

TEST_F(PrefixCacheTest, APoolThatRunsDryWhileLoadingKeepsWhatWasLoaded) {
  save_text();
  PagePool pool = small_pool(3);
  PrefixCache cache(pool, store());
  Sequence sequence(pool);
  EXPECT_EQ(cache.extend(sequence, 0, "", kText), 48U);
  EXPECT_EQ(pool.num_free(), 0U);
  pool.check_conservation();
}

TEST_F(PrefixCacheTest, CountersAddUp) {
  PagePool pool = small_pool(4);
  PrefixCache cache(pool);
  Sequence sequence(pool);
  EXPECT_EQ(cache.extend(sequence, 0, "", kText), 0U);
  cache.add(marked_sequence(pool, 4, 0), "", kText);
  EXPECT_EQ(cache.extend(sequence, 0, "", diverging(kText, 20)), 20U);
  sequence.truncate(0);
  const Sequence all = marked_sequence(pool, 3, 0);
  const PrefixCounters counters = cache.counters();
  EXPECT_EQ(counters.lookups, 2U);
  EXPECT_EQ(counters.looked_up_tokens, 128U);
  EXPECT_EQ(counters.hit_tokens, 20U);
  EXPECT_EQ(counters.evictions, 3U);
  EXPECT_EQ(counters.cached_pages, 1U);
}

}  // namespace
}  // namespace cicada::kv
