#include "cicada/engine/generator.h"

#include <gtest/gtest.h>

#include <limits>

#include "cicada/model/test_model.h"

namespace cicada::engine {
namespace {

using Ids = std::vector<TokenId>;

// On the level that a user gets, and on those whose roles differ.
std::vector<platform::IsaLevel> levels() {
  std::vector<platform::IsaLevel> list;
  for (const platform::IsaLevel level : kernels::runnable_levels()) {
    if (level == kernels::best_level() || platform::has_tiles(level)) list.push_back(level);
  }
  return list;
}

class GeneratorTest : public testing::TestWithParam<platform::IsaLevel> {
 protected:
  GeneratorTest()
      : pool_(2), model_(model::load_test_model(model::test_file({}), pool_, GetParam())) {}

  std::unique_ptr<Generator> generator(std::size_t context, std::size_t chunk = 16) {
    auto made = Generator::create(*model_, pool_, {.context = context, .chunk = chunk});
    EXPECT_TRUE(made.has_value());
    return std::move(*made);
  }

  static Ids prompt(std::size_t length) {
    Ids ids;
    for (std::size_t i = 0; i < length; ++i) {
      ids.emplace_back(static_cast<std::int32_t>(i * 31 % model::kTestVocab));
    }
    return ids;
  }

  static Generation answer(Generator& generator, const Ids& prompt,
                           const GenerateOptions& options) {
    auto result = generator.generate(prompt, options, [](TokenId) { return true; });
    EXPECT_TRUE(result.has_value()) << result.error().to_string();
    return std::move(*result);
  }

  platform::ThreadPool pool_;
  std::unique_ptr<model::Model> model_;
};

const GenerateOptions kSampled = {.max_tokens = 40, .sampler = {.temperature = 1.0F, .seed = 9}};

TEST_P(GeneratorTest, AReplayedGenerationIsTheSame) {
  const Ids ids = prompt(50);
  const Generation first = answer(*generator(128), ids, kSampled);
  EXPECT_EQ(first.tokens.size(), 40U);
  EXPECT_EQ(answer(*generator(128, 7), ids, kSampled).tokens, first.tokens);
  GenerateOptions other = kSampled;
  other.sampler.seed = 10;
  EXPECT_NE(answer(*generator(128), ids, other).tokens, first.tokens);
}

// Repeats itself, so that there is much to guess, and small enough that guesses pay at once.
TEST_P(GeneratorTest, DraftingChangesNoToken) {
  std::size_t drafted = 0;
  for (const std::size_t period : {6U, 2U, 5U}) {
    Ids ids;
    for (std::size_t i = 0; i < 60; ++i) ids.emplace_back(static_cast<std::int32_t>(i % period));
    for (const auto& [temperature, most] : {std::pair{0.0F, 1U},
                                            {0.0F, 3U},
                                            {0.0F, 9U},
                                            {0.0F, 150U},
                                            {0.3F, 2U},
                                            {0.3F, 150U},
                                            {1.0F, 150U}}) {
      GenerateOptions options{.max_tokens = most,
                              .sampler = {.temperature = temperature, .seed = 4}};
      const Generation guessed = answer(*generator(256), ids, options);
      options.draft = false;
      const Generation plain = answer(*generator(256), ids, options);
      EXPECT_EQ(guessed.tokens, plain.tokens) << temperature << ", " << most;
      EXPECT_EQ(guessed.reason, plain.reason);
      EXPECT_EQ(plain.drafted_tokens, 0U);
      EXPECT_LE(guessed.accepted_tokens, guessed.drafted_tokens);
      drafted += guessed.drafted_tokens;
    }
  }
  EXPECT_GT(drafted, 0U) << "nothing was tested";
}

TEST_P(GeneratorTest, TheNextTurnReusesThePromptAndGivesTheBitsOfAFreshOne) {
  auto warm = generator(256);
  const Ids first_prompt = prompt(50);
  const Generation first = answer(*warm, first_prompt, kSampled);
  Ids second_prompt = first_prompt;
  second_prompt.insert(second_prompt.end(), first.tokens.begin(), first.tokens.end());
  second_prompt.emplace_back(5);
  const Generation second = answer(*warm, second_prompt, kSampled);
  // The reply was decoded, so it is prefilled again; the prompt is not.
  EXPECT_EQ(second.reused_tokens, first_prompt.size());
  EXPECT_EQ(second.tokens, answer(*generator(256), second_prompt, kSampled).tokens);
}

TEST_P(GeneratorTest, TheSamePromptRecomputesItsLastTokenOnly) {
  auto warm = generator(128);
  const Ids ids = prompt(30);
  const Ids tokens = answer(*warm, ids, kSampled).tokens;
  const Generation again = answer(*warm, ids, kSampled);
  EXPECT_EQ(again.reused_tokens, 29U);
  EXPECT_EQ(again.tokens, tokens);
}

TEST_P(GeneratorTest, AFullContextEndsWithLength) {
  const Generation result = answer(*generator(64), prompt(63), {});
  EXPECT_EQ(result.tokens.size(), 1U);
  EXPECT_EQ(result.reason, FinishReason::kLength);
}

TEST_P(GeneratorTest, APromptWithoutRoomIsRefusedWithBothNumbers) {
  for (const std::size_t length : {64U, 65U, 500U}) {
    const auto result = generator(64)->generate(prompt(length), {}, [](TokenId) { return true; });
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code(), Code::kOutOfCapacity);
    EXPECT_TRUE(formats::has(result.error().message(), std::to_string(length)));
    EXPECT_TRUE(formats::has(result.error().message(), "64"));
  }
  EXPECT_FALSE(generator(64)->generate({}, {}, [](TokenId) { return true; }).has_value());
}

TEST(CacheFits, AContextBeyondMemoryIsRefusedWithWhatFits) {
  const kv::KvLayout layout({.num_kv_heads = 3,
                             .head_dim = 64,
                             .value_dim = 64,
                             .layers = std::vector<kv::LayerFormat>(2)},
                            kv::kPageTokens);
  const std::size_t per_token = layout.bytes_per_token();
  EXPECT_EQ(per_token, 2U * 3U * 256U);
  EXPECT_TRUE(check_cache_fits(layout, 1000, 1000 * per_token).has_value());
  const auto refused = check_cache_fits(layout, 1001, 1000 * per_token);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), Code::kOutOfMemory);
  EXPECT_TRUE(formats::has(refused.error().message(), "1001 tokens"));
  EXPECT_TRUE(formats::has(refused.error().message(), "960 tokens fit"));  // whole pages of 64
  EXPECT_FALSE(check_cache_fits(layout, SIZE_MAX, 1000 * per_token).has_value());
}

// Weights of NaN, and ones whose products overflow.
TEST_P(GeneratorTest, LogitsThatAreNotFiniteEndItWithAnError) {
  for (const float head : {std::numeric_limits<float>::quiet_NaN(), 3e38F}) {
    const auto model = model::load_test_model(model::test_file({.head = head}), pool_, GetParam());
    auto generator = Generator::create(*model, pool_, {.context = 64});
    for (const GenerateOptions& options : {GenerateOptions{}, kSampled}) {
      bool has_answered = false;
      const auto result = (*generator)->generate(prompt(5), options, [&](TokenId) {
        has_answered = true;
        return true;
      });
      ASSERT_FALSE(result.has_value()) << head;
      EXPECT_EQ(result.error().code(), Code::kInternal);
      EXPECT_TRUE(formats::has(result.error().message(), "logits are not finite"));
      EXPECT_FALSE(has_answered);
    }
  }
}

TEST_P(GeneratorTest, EndTokensStopAndAreNotPartOfTheAnswer) {
  const Ids ids = prompt(20);
  const Ids tokens = answer(*generator(64), ids, {.max_tokens = 8}).tokens;
  GenerateOptions options{.max_tokens = 8};
  options.end_tokens = {tokens[3]};
  const Generation result = answer(*generator(64), ids, options);
  EXPECT_EQ(result.reason, FinishReason::kStop);
  const auto first = std::find(tokens.begin(), tokens.end(), tokens[3]);
  EXPECT_EQ(result.tokens, Ids(tokens.begin(), first));
}

TEST_P(GeneratorTest, CancellingStopsBetweenSteps) {
  int asked = 0;
  GenerateOptions options;
  options.is_cancelled = [&asked] { return ++asked > 5; };
  const Generation result = answer(*generator(128), prompt(20), options);
  EXPECT_EQ(result.reason, FinishReason::kCancelled);
  EXPECT_LT(result.tokens.size(), 6U);
}

INSTANTIATE_TEST_SUITE_P(engine, GeneratorTest, testing::ValuesIn(levels()),
                         [](const auto& p) { return std::string(platform::name(p.param)); });

}  // namespace
}  // namespace cicada::engine
