#include "cicada/kv/prefix_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "cicada/kv/small_pool_for_test.h"
#include "cicada/platform/test_folder.h"

namespace cicada::kv {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<TokenId>;

class PrefixStoreTest : public testing::Test {
 protected:
  PrefixStoreOptions options() {
    return {.folder = folder_.path() + "/cache",
            .model_identity = "model",
            .numerics_id = "numerics",
            .log = [this](std::string_view line) { lines_.emplace_back(line); }};
  }

  PrefixStore open(PrefixStoreOptions options, const KvLayout& layout = small_layout()) {
    auto store = PrefixStore::open(layout, std::move(options));
    EXPECT_TRUE(store.has_value()) << store.error().to_string();
    return std::move(*store);
  }

  static std::string key_of(const PrefixStore& store, std::string_view salt = "") {
    return *PrefixStore::next_key(*store.root_key(salt), kIds);
  }

  // Saves a page of the bytes that tests look for.
  std::string save(PrefixStore& store) {
    const std::string key = key_of(store);
    store.save(key, kIds, 0, page_);
    return key;
  }

  bool load(PrefixStore& store, std::string_view key, const Ids& ids = kIds) {
    std::vector<std::byte> page(page_.size());
    return store.load(key, ids, 0, page) && page == page_;
  }

  static std::string contents(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }

  std::size_t num_files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_.path() + "/cache"), fs::directory_iterator()));
  }

  static inline const Ids kIds = ids_from(5, kSmallPage);
  const platform::TestFolder folder_;
  std::vector<std::string> lines_;
  std::vector<std::byte> page_ = [] {
    std::vector<std::byte> page(small_layout().page_bytes());
    for (std::size_t i = 0; i < page.size(); ++i)
      page[i] = static_cast<std::byte>(i * 13 + i / 256);
    return page;
  }();
};

TEST_F(PrefixStoreTest, AnotherProcessFindsThePageByteForByte) {
  PrefixStore writer = open(options());
  const std::string key = save(writer);
  PrefixStore reader = open(options());
  EXPECT_EQ(key_of(reader), key);
  EXPECT_TRUE(reader.contains(key));
  EXPECT_TRUE(load(reader, key));
  EXPECT_TRUE(lines_.empty());
  EXPECT_EQ(num_files(), 1U);  // no temporary is left
}

TEST_F(PrefixStoreTest, WhatBitsDependOnIsInTheKey) {
  const std::string key = key_of(open(options()));
  EXPECT_EQ(key.size(), 64U);
  const auto other = [&](auto&& change, const KvLayout& layout = small_layout()) {
    PrefixStoreOptions changed = options();
    change(changed);
    return key_of(open(changed, layout));
  };
  EXPECT_EQ(other([](auto&) {}), key);
  EXPECT_NE(other([](auto& o) { o.model_identity = "model2"; }), key);
  EXPECT_NE(other([](auto& o) { o.numerics_id = "numerics2"; }), key);
  // The same letters, divided otherwise.
  EXPECT_NE(other([](auto& o) {
              o.model_identity = "modeln";
              o.numerics_id = "umerics";
            }),
            key);
  EXPECT_NE(other([](auto&) {}, small_layout(32)), key);
  KvShape shape = small_layout().shape();
  shape.layers[1].values = kernels::CacheType::kQ8;
  EXPECT_NE(other([](auto&) {}, {shape, kSmallPage}), key);
  shape = small_layout().shape();
  std::swap(shape.head_dim, shape.value_dim);  // as many bytes
  EXPECT_NE(other([](auto&) {}, {shape, kSmallPage}), key);

  const PrefixStore store = open(options());
  EXPECT_NE(key_of(store, "salt"), key);
  EXPECT_NE(*PrefixStore::next_key(*store.root_key(""), ids_from(6, kSmallPage)), key);
  EXPECT_NE(*PrefixStore::next_key(key, kIds), key);
}

TEST_F(PrefixStoreTest, NothingIsSaidAboutPagesThatAreNotThere) {
  PrefixStore store = open(options());
  EXPECT_FALSE(store.contains(key_of(store)));
  EXPECT_FALSE(load(store, key_of(store)));
  EXPECT_TRUE(lines_.empty());
}

// Every byte of a file counts: header, page and checksum.
TEST_F(PrefixStoreTest, AFlippedBitAnywhereIsNotTrusted) {
  PrefixStore writer = open(options());
  const std::string key = save(writer);
  const std::string good = contents(writer.path(key));
  for (std::size_t at = 0; at < good.size(); at += at < 160 || at + 64 > good.size() ? 7U : 500U) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    std::ofstream(writer.path(key), std::ios::binary) << bad;
    PrefixStore reader = open(options());
    lines_.clear();
    EXPECT_FALSE(load(reader, key)) << at;
    ASSERT_EQ(lines_.size(), 1U) << at;
    EXPECT_NE(lines_[0].find("it is ignored"), std::string::npos);
    EXPECT_NE(lines_[0].find(key), std::string::npos);
  }
}

TEST_F(PrefixStoreTest, FilesOfAnotherSizeAreIgnoredWithOneLineAndWrittenAnew) {
  PrefixStore writer = open(options());
  const std::string key = save(writer);
  const std::string good = contents(writer.path(key));
  for (const std::string& bad :
       {std::string(), good.substr(0, 1), good.substr(0, good.size() - 1), good + "x"}) {
    std::ofstream(writer.path(key), std::ios::binary) << bad;
    PrefixStore store = open(options());
    lines_.clear();
    EXPECT_FALSE(load(store, key)) << bad.size();
    EXPECT_EQ(lines_.size(), 1U);
    EXPECT_FALSE(store.contains(key));  // not asked for again
    save(store);
    EXPECT_TRUE(load(store, key));
    EXPECT_EQ(lines_.size(), 1U);
  }
}

TEST_F(PrefixStoreTest, AFileUnderAnothersNameIsIgnored) {
  PrefixStoreOptions other = options();
  other.model_identity = "another model";
  PrefixStore foreign = open(other);
  PrefixStore store = open(options());
  fs::rename(foreign.path(save(foreign)), store.path(key_of(store)));
  EXPECT_FALSE(load(store, key_of(store)));
  ASSERT_EQ(lines_.size(), 1U);
  EXPECT_NE(lines_[0].find("header"), std::string::npos);
}

// As two texts whose keys are equal would be, which nobody can make.
TEST_F(PrefixStoreTest, TheIdsAreComparedToo) {
  PrefixStore store = open(options());
  const std::string key = save(store);
  EXPECT_FALSE(load(store, key, ids_from(6, kSmallPage)));
  EXPECT_EQ(lines_.size(), 1U);
}

TEST_F(PrefixStoreTest, WhatIsNoFileIsIgnoredAndLeftAlone) {
  PrefixStore store = open(options());
  const std::string key = key_of(store);
  fs::create_directories(store.path(key) + "/inside");
  EXPECT_FALSE(load(store, key));
  ASSERT_EQ(lines_.size(), 1U);
  EXPECT_NE(lines_[0].find("is a directory"), std::string::npos);
  save(store);
  EXPECT_TRUE(fs::exists(store.path(key) + "/inside"));
  EXPECT_TRUE(store.is_writable());
  fs::remove_all(store.path(key));
  ASSERT_EQ(::mkfifo(store.path(key).c_str(), 0600), 0);
  PrefixStore second = open(options());
  EXPECT_FALSE(load(second, key));  // and does not wait for the other end
  EXPECT_EQ(lines_.size(), 2U);
}

TEST_F(PrefixStoreTest, AFolderThatIsAFileIsRefusedByName) {
  folder_.write("cache", "text");
  const auto refused = PrefixStore::open(small_layout(), options());
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), Code::kInvalidArgument);
  EXPECT_EQ(refused.error().message(),
            folder_.path() + "/cache: is a file, a folder for the prefix cache is needed");
  PrefixStoreOptions below = options();
  below.folder += "/below";
  const auto impossible = PrefixStore::open(small_layout(), below);
  ASSERT_FALSE(impossible.has_value());
  EXPECT_NE(impossible.error().message().find("/cache/below"), std::string::npos);
}

TEST_F(PrefixStoreTest, AFullDiskStopsWritingWithOneLineAndReadingGoesOn) {
  PrefixStore first = open(options());
  const std::string key = save(first);
  int tries = 0;
  PrefixStoreOptions full = options();
  full.write = [&tries](const std::string& path, Pieces) -> Result<void> {
    ++tries;
    return fail(Code::kIo, "{}: writing failed: No space left on device", path);
  };
  PrefixStore store = open(full);
  for (const char* salt : {"a", "b", "c"}) store.save(key_of(store, salt), kIds, 0, page_);
  EXPECT_EQ(tries, 1);
  EXPECT_FALSE(store.is_writable());
  ASSERT_EQ(lines_.size(), 1U);
  EXPECT_NE(lines_[0].find("No space left"), std::string::npos);
  EXPECT_NE(lines_[0].find("nothing more is written"), std::string::npos);
  EXPECT_TRUE(load(store, key));
}

TEST_F(PrefixStoreTest, AFolderThatGoesAwayStopsWritingWithOneLine) {
  PrefixStore store = open(options());
  fs::remove_all(folder_.path() + "/cache");
  for (const char* salt : {"a", "b"}) store.save(key_of(store, salt), kIds, 0, page_);
  EXPECT_EQ(lines_.size(), 1U);
  EXPECT_FALSE(store.is_writable());
}

TEST_F(PrefixStoreTest, TheLimitIsKeptAndWhatWasNotUsedForLongestGoes) {
  std::uint64_t bytes = 0;
  {
    PrefixStore store = open(options());
    bytes = fs::file_size(store.path(save(store)));
    fs::remove(store.path(key_of(store)));
  }
  PrefixStoreOptions small = options();
  small.max_bytes = 4 * bytes + bytes / 2;
  PrefixStore store = open(small);
  const auto key = [&](int i) { return key_of(store, std::to_string(i)); };
  folder_.write("cache/notes.txt", std::string(100, 'x'));  // not ours: neither counted nor removed
  for (int i = 0; i < 4; ++i) {
    store.save(key(i), kIds, 0, page_);
    fs::last_write_time(store.path(key(i)),
                        fs::file_time_type::clock::now() - std::chrono::hours(10 - i));
  }
  EXPECT_TRUE(load(store, key(0)));  // used, so the second is the oldest
  store.save(key(4), kIds, 0, page_);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(store.contains(key(i)), i != 1) << i;
  // Another process knows what is there.
  PrefixStore second = open(small);
  second.save(key(5), kIds, 0, page_);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(store.contains(key(i)), i != 1 && i != 2) << i;
  EXPECT_TRUE(fs::exists(folder_.path() + "/cache/notes.txt"));
  EXPECT_TRUE(lines_.empty());
}

// Without the pages before it a page is of no use, so of one text the last go first.
TEST_F(PrefixStoreTest, DeeperPagesCountAsOlder) {
  PrefixStore store = open(options());
  std::string key = *store.root_key("");
  std::vector<fs::file_time_type> times;
  for (std::size_t depth = 0; depth < 5; ++depth) {
    key = *PrefixStore::next_key(key, kIds);
    store.save(key, kIds, depth, page_);
    times.push_back(fs::last_write_time(store.path(key)));
  }
  EXPECT_TRUE(std::is_sorted(times.rbegin(), times.rend()));
  EXPECT_LT(times[4], times[0]);
  std::vector<std::byte> page(page_.size());
  ASSERT_TRUE(store.load(key, kIds, 8, page));
  EXPECT_LT(fs::last_write_time(store.path(key)), times[4]);
}

// A text that grows: the pages that were there already are as young as those that come behind.
TEST_F(PrefixStoreTest, SavingAPageThatIsThereMakesItYoung) {
  PrefixStore store = open(options());
  const std::string key = *PrefixStore::next_key(*store.root_key(""), kIds);
  store.save(key, kIds, 0, page_);
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  fs::last_write_time(store.path(key), long_ago);
  store.save(key, kIds, 0, page_);
  EXPECT_GT(fs::last_write_time(store.path(key)), long_ago + std::chrono::minutes(59));
}

TEST_F(PrefixStoreTest, AFolderThatHasMoreThanIsAllowedNowIsTrimmedWhenOpened) {
  std::vector<std::string> keys;
  {
    PrefixStore store = open(options());
    std::string key = *store.root_key("");
    for (std::size_t depth = 0; depth < 4; ++depth) {
      keys.push_back(key = *PrefixStore::next_key(key, kIds));
      store.save(key, kIds, depth, page_);
    }
  }
  PrefixStoreOptions less = options();
  less.max_bytes = 3 * page_.size();
  const PrefixStore store = open(less);
  EXPECT_TRUE(store.contains(keys[0]));
  EXPECT_FALSE(store.contains(keys[3]));
}

TEST_F(PrefixStoreTest, APageBeyondTheWholeLimitIsOneLine) {
  PrefixStoreOptions tiny = options();
  tiny.max_bytes = page_.size();
  PrefixStore store = open(tiny);
  save(store);
  save(store);
  ASSERT_EQ(lines_.size(), 1U);
  EXPECT_NE(lines_[0].find(std::to_string(page_.size())), std::string::npos);
  EXPECT_EQ(num_files(), 0U);
}

TEST_F(PrefixStoreTest, TheFolderIsMadeForThisUserOnly) {
  open(options());
  EXPECT_EQ(fs::status(folder_.path() + "/cache").permissions(), fs::perms::owner_all);
}

}  // namespace
}  // namespace cicada::kv
