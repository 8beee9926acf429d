#include "cicada/engine/kv_gate.h"

#include "cicada/engine/scorer.h"
#include "cicada/model/test_model.h"
#include "cicada/tokenizer/tokenizer.h"

namespace cicada::engine {
namespace {

TEST(Divergence, IsThatOfTheDistributionsWhateverIsAddedToLogits) {
  const std::vector<float> p = {0.0F, 1.0F, 2.0F};
  std::vector<float> q = {1.0F, 1.0F, 1.0F};
  EXPECT_EQ(divergence(p, p), 0.0);
  const double sum = 1.0 + std::exp(1.0) + std::exp(2.0);
  double expected = 0.0;
  for (const double logit : {0.0, 1.0, 2.0}) {
    const double probability = std::exp(logit) / sum;
    expected += probability * std::log(probability * 3.0);
  }
  EXPECT_NEAR(divergence(p, q), expected, 1e-12);
  for (float& logit : q) logit += 5.0F;
  EXPECT_NEAR(divergence(p, q), expected, 1e-12);
  EXPECT_NEAR(negative_log_likelihood(p, TokenId(1)), std::log(sum) - 1.0, 1e-12);
}

// Texts go through a scorer whatever its batch: the same positions, each once, with equal logits.
TEST(Scorer, GivesEachPositionOnceAndTheSameLogitsWhateverTheBatchAndRole) {
  platform::ThreadPool pool(2);
  const auto model = model::load_test_model(model::test_file({}), pool, kernels::best_level());
  std::vector<TokenId> text;
  for (std::int32_t i = 0; i < 70; ++i) text.emplace_back(7 * i % 300);
  const auto logits_by = [&](const ScorerOptions& options) {
    auto scorer = Scorer::create(*model, pool, options);
    EXPECT_TRUE(scorer.has_value());
    std::vector<std::vector<float>> rows(text.size());
    const auto scored = scorer->run(
        text, 30, [] { return false; },
        [&](std::size_t position, std::span<const float> logits) {
          EXPECT_TRUE(rows[position].empty());
          rows[position].assign(logits.begin(), logits.end());
        });
    EXPECT_TRUE(scored.has_value());
    return rows;
  };
  const auto expected = logits_by({.context = 70});
  for (std::size_t i = 0; i < 30; ++i) EXPECT_TRUE(expected[i].empty());
  for (std::size_t i = 30; i < 70; ++i) EXPECT_EQ(expected[i].size(), model::kTestVocab);
  EXPECT_EQ(logits_by({.context = 70, .batch = 13}), expected);
  auto scorer = Scorer::create(*model, pool, {.context = 70});
  const auto cancelled = scorer->run(
      text, 0, [] { return true; }, [](std::size_t, std::span<const float>) {});
  ASSERT_FALSE(cancelled.has_value());
  EXPECT_EQ(cancelled.error().code(), Code::kCancelled);
}

}  // namespace
}  // namespace cicada::engine
