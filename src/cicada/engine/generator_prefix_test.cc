// What a generator reuses of earlier prompts.
#include <gtest/gtest.h>

#include <filesystem>

#include "cicada/engine/generator.h"
#include "cicada/model/test_model.h"
#include "cicada/platform/test_folder.h"

namespace cicada::engine {
namespace {

using Ids = std::vector<TokenId>;

const GenerateOptions kSampled = {.max_tokens = 12, .sampler = {.temperature = 1.0F, .seed = 9}};

class GeneratorPrefix : public testing::Test {
 protected:
  GeneratorPrefix()
      : workers_(2),
        model_(model::load_test_model(model::test_file({}), workers_, kernels::best_level())) {}

  std::unique_ptr<Generator> generator(GeneratorOptions options = {}) {
    if (options.context == 0) options.context = 300;
    if (options.page_tokens == kv::kPageTokens) options.page_tokens = 16;
    auto made = Generator::create(*model_, workers_, options);
    EXPECT_TRUE(made.has_value()) << made.error().to_string();
    return std::move(*made);
  }

  kv::PrefixStoreOptions store() {
    return {.folder = folder_.path() + "/cache",
            .model_identity = "model",
            .log = [this](std::string_view line) { lines_.emplace_back(line); }};
  }

  static Ids prompt(std::size_t length, std::int32_t factor = 31) {
    Ids ids;
    for (std::size_t i = 0; i < length; ++i) {
      ids.emplace_back((1 + static_cast<std::int32_t>(i) * factor) %
                       static_cast<std::int32_t>(model::kTestVocab));
    }
    return ids;
  }

  // `ids` with another end from `begin` on.
  static Ids with_tail(Ids ids, std::size_t begin, std::int32_t id) {
    std::fill(ids.begin() + static_cast<std::ptrdiff_t>(begin), ids.end(), TokenId(id));
    return ids;
  }

  static Generation answer(Generator& generator, const Ids& prompt,
                           const GenerateOptions& options = kSampled) {
    auto result = generator.generate(prompt, options, [](TokenId) { return true; });
    EXPECT_TRUE(result.has_value()) << result.error().to_string();
    generator.check_pages();
    return std::move(*result);
  }

  // Reuses this many tokens and answers like a fresh generator.
  void expect_reuse(Generator& warm, const Ids& ids, std::size_t tokens,
                    const GenerateOptions& options = kSampled) {
    const Generation generation = answer(warm, ids, options);
    EXPECT_EQ(generation.reused_tokens, tokens);
    EXPECT_EQ(generation.tokens, answer(*generator(), ids, options).tokens);
  }

  platform::ThreadPool workers_;
  std::unique_ptr<model::Model> model_;
  const platform::TestFolder folder_;
  std::vector<std::string> lines_;
};

TEST_F(GeneratorPrefix, AnEarlierPromptIsReusedAfterOthers) {
  auto warm = generator();
  const Ids first = prompt(100);
  answer(*warm, first);
  answer(*warm, prompt(90, 7));
  expect_reuse(*warm, with_tail(first, 70, 5), 70);
  expect_reuse(*warm, first, 96);
  expect_reuse(*warm, prompt(90, 7), 80);
  const kv::PrefixCounters counters = warm->prefix_counters();
  EXPECT_EQ(counters.lookups, 5U);
  EXPECT_EQ(counters.hit_tokens, 70U + 96U + 80U + 1U);  // all prompts begin with the same token
  EXPECT_EQ(counters.cached_pages, 6U + 5U + 2U);
}

// A prompt of whole pages is known to its end, and its last token is computed in a copy.
TEST_F(GeneratorPrefix, AWholeHitComputesTheLastTokenAndLeavesTheKnownPageAlone) {
  auto warm = generator();
  const Ids ids = prompt(96);
  answer(*warm, ids);
  answer(*warm, prompt(40, 7));
  expect_reuse(*warm, ids, 95);
  answer(*warm, prompt(40, 7));
  Ids longer = ids;
  longer.emplace_back(3);
  expect_reuse(*warm, longer, 96);
}

TEST_F(GeneratorPrefix, WhatWasDecodedIsNotReused) {
  auto warm = generator();
  const Ids first = prompt(40);
  const Generation generation = answer(*warm, first);
  Ids second = first;
  second.insert(second.end(), generation.tokens.begin(), generation.tokens.end());
  second.emplace_back(5);
  answer(*warm, prompt(40, 7));
  // 52 tokens and one more fill three pages, but only two were computed as a prompt.
  expect_reuse(*warm, second, 32);
}

TEST_F(GeneratorPrefix, AfterAnAnswerOnlyThePromptsPagesAreHeld) {
  auto warm = generator({.pool_pages = 20});
  answer(*warm, prompt(100), {.max_tokens = 60});
  EXPECT_EQ(warm->prefix_counters().cached_pages, 6U);
  EXPECT_EQ(warm->prefix_counters().free_pages, 13U);
}

TEST_F(GeneratorPrefix, PromptsOfAnotherSaltShareNothing) {
  auto warm = generator();
  const Ids ids = prompt(100);
  GenerateOptions salted = kSampled;
  salted.salt = "a";
  answer(*warm, ids, salted);
  expect_reuse(*warm, ids, 0);
  salted.salt = "b";
  expect_reuse(*warm, ids, 0, salted);
  salted.salt = "a";
  expect_reuse(*warm, ids, 96, salted);
}

TEST_F(GeneratorPrefix, ACancelledPromptIsKnownAsFarAsItCame) {
  auto warm = generator({.chunk = 16});
  const Ids ids = prompt(100);
  GenerateOptions options = kSampled;
  int asked = 0;
  options.is_cancelled = [&asked] { return ++asked > 3; };
  EXPECT_EQ(answer(*warm, ids, options).reason, FinishReason::kCancelled);
  answer(*warm, prompt(40, 7));
  expect_reuse(*warm, ids, 48);
}

TEST_F(GeneratorPrefix, ASmallPoolForgetsTheOldestAndAnswersAllTheSame) {
  // What the context fills, and one page.
  auto warm = generator({.context = 160, .pool_pages = 11});
  for (int round = 0; round < 2; ++round) {
    for (const std::int32_t factor : {31, 7, 11, 13}) {
      const Ids ids = prompt(120, factor);
      EXPECT_EQ(answer(*warm, ids, {.max_tokens = 40}).tokens,
                answer(*generator(), ids, {.max_tokens = 40}).tokens);
    }
  }
  EXPECT_GT(warm->prefix_counters().evictions, 20U);
  EXPECT_LE(warm->prefix_counters().cached_pages, 11U);
}

TEST_F(GeneratorPrefix, APoolThatRunsDryInAnAnswerIsAnErrorAndNothingIsLost) {
  auto small = generator({.pool_pages = 4});
  const Ids ids = prompt(50);
  Ids told;
  const auto result = small->generate(ids, {.draft = false}, [&told](TokenId id) {
    told.push_back(id);
    return true;
  });
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code(), Code::kOutOfCapacity);
  // Positions 50 to 63 had room, and the token of the last of them came too.
  EXPECT_EQ(told.size(), 15U);
  EXPECT_EQ(result.error().to_string(),
            "after 15 tokens of the answer: all 4 KV pages of 16 tokens are in use");
  small->check_pages();
  EXPECT_EQ(answer(*generator(), ids, {.max_tokens = 15, .draft = false}).tokens, told);
  // The prompt is still known, and what has room is answered.
  const Generation again = answer(*small, ids, {.max_tokens = 15, .draft = false});
  EXPECT_EQ(again.reused_tokens, 49U);
  EXPECT_EQ(again.tokens, told);
  // A prompt that has no room, for which what was known is given up.
  const auto refused = small->generate(prompt(80, 7), {}, [](TokenId) { return true; });
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), Code::kOutOfCapacity);
  small->check_pages();
  expect_reuse(*small, prompt(33), 1);
}

TEST_F(GeneratorPrefix, AnotherPageSizeIsRefusedWithThoseThereAre) {
  const auto refused = Generator::create(*model_, workers_, {.context = 64, .page_tokens = 48});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message(), "KV pages of 48 tokens: 16, 32 and 64 are possible");
}

TEST_F(GeneratorPrefix, AFolderOutlivesTheGenerator) {
  const Ids ids = prompt(100);
  {
    auto first = generator({.prefix_store = store()});
    answer(*first, ids);
    first->save_prefix();
    EXPECT_TRUE(std::filesystem::exists(folder_.path() + "/cache"));
    answer(*first, prompt(40, 7));  // saved when the generator goes
  }
  auto second = generator({.prefix_store = store()});
  expect_reuse(*second, with_tail(ids, 90, 5), 80);
  expect_reuse(*second, prompt(40, 7), 32);
  EXPECT_EQ(second->prefix_counters().loaded_pages, 7U);
  EXPECT_TRUE(lines_.empty());
  // Pages of another size, and another model, are others.
  expect_reuse(*generator({.page_tokens = 32, .prefix_store = store()}), ids, 0);
  kv::PrefixStoreOptions foreign = store();
  foreign.model_identity = "another";
  expect_reuse(*generator({.prefix_store = foreign}), ids, 0);
}

TEST_F(GeneratorPrefix, AnotherNumericsIdFindsNothing) {
  const Ids ids = prompt(100);
  answer(*generator({.prefix_store = store()}), ids);
  for (const platform::IsaLevel level : kernels::runnable_levels()) {
    const auto model = model::load_test_model(model::test_file({}), workers_, level);
    auto made = Generator::create(*model, workers_,
                                  {.context = 300, .page_tokens = 16, .prefix_store = store()});
    ASSERT_TRUE(made.has_value());
    const bool is_same = model->numerics_id() == model_->numerics_id();
    EXPECT_EQ(answer(**made, ids).reused_tokens, is_same ? 96U : 0U) << platform::name(level);
  }
}

TEST_F(GeneratorPrefix, AFullDiskIsOneLineAndAnswersGoOn) {
  kv::PrefixStoreOptions full = store();
  full.write = [](const std::string& path, kv::Pieces) -> Result<void> {
    return fail(Code::kIo, "{}: writing failed: No space left on device", path);
  };
  auto warm = generator({.prefix_store = full});
  const Ids ids = prompt(100);
  answer(*warm, ids);
  warm->save_prefix();
  expect_reuse(*warm, with_tail(ids, 90, 5), 90);
  warm->save_prefix();
  EXPECT_EQ(lines_.size(), 1U);
}

TEST(PoolPages, AQuarterOfWhatIsLeftIsForPrefixes) {
  const kv::KvLayout layout({.num_kv_heads = 1,
                             .head_dim = 64,
                             .value_dim = 64,
                             .layers = std::vector<kv::LayerFormat>(1)},
                            16);
  const std::uint64_t page = layout.page_bytes();
  EXPECT_EQ(default_pool_pages(layout, 160, 0), 11U);
  EXPECT_EQ(default_pool_pages(layout, 160, 11 * page), 11U);
  EXPECT_EQ(default_pool_pages(layout, 160, 111 * page), 36U);
  EXPECT_EQ(default_pool_pages(layout, 161, 111 * page), 36U);
  EXPECT_EQ(pool_pages_in(layout, 160, 12 * page - 1).value(), 11U);
  const auto too_few = pool_pages_in(layout, 160, 11 * page - 1);
  ASSERT_FALSE(too_few.has_value());
  EXPECT_EQ(too_few.error().code(), Code::kInvalidArgument);
  EXPECT_EQ(too_few.error().message(),
            fmt::format("{} bytes for keys and values: one request of 160 tokens needs {}, a "
                        "context of 144 would fit",
                        11 * page - 1, 11 * page));
  EXPECT_EQ(default_pool_pages(layout, 160, UINT64_MAX), 11U + (1U << 16));
}

}  // namespace
}  // namespace cicada::engine
