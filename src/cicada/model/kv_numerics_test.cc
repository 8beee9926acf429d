// What other ways to cache and to read change, and what they do not. That their bits are as steady
// as those of f16 is tested with those (model_numerics_test.cc).
#include <gtest/gtest.h>

#include <cmath>

#include "cicada/model/numerics_ways_for_test.h"

namespace cicada::model {
namespace {

// A window that holds the whole text, with sinks or without, is no window; a shorter one is another
// model, and sinks are read.
TEST(NumericsOfPolicies, AWindowAsLongAsTheTextChangesNothingAndAShorterOneDoes) {
  const Text text;
  const auto logits_with = [&](const char* policy) {
    return logits_by(*load({.policy = policy}, kernels::best_level()), {.threads = 2}, text);
  };
  const std::vector<float> all = logits_with("all");
  EXPECT_EQ(logits_with("window:150"), all);
  EXPECT_EQ(logits_with("window:1000,sinks:4"), all);
  EXPECT_EQ(logits_with("window:10,sinks:140"), all);
  const std::vector<float> window = logits_with("window:20");
  const std::vector<float> with_sinks = logits_with("window:20,sinks:4");
  EXPECT_NE(window, all);
  EXPECT_NE(with_sinks, all);
  EXPECT_NE(with_sinks, window);
  // The first rows see everything in either.
  EXPECT_EQ(std::vector<float>(window.begin(), window.begin() + 20 * kTestVocab),
            std::vector<float>(all.begin(), all.begin() + 20 * kTestVocab));
  EXPECT_EQ(logits_with("angle:0.1,theta:1000"), logits_with("window:16"));  // C038
}

// Pages are chosen for decoded rows, however many go through at once and whatever the pages of the
// cache are; as many as there are choose nothing; a prompt reads everything.
TEST(NumericsOfPolicies, ChosenPagesAreForDecodedRowsAndAllOfThemAreNoChoice) {
  const Text text{.length = 700};
  const Way decoding{.threads = 2, .prompt = 200};
  const auto logits_with = [&](const char* policy, const Way& way) {
    return logits_by(*load({.num_layers = 2, .policy = policy}, kernels::best_level()), way, text);
  };
  const std::vector<float> all = logits_with("all", decoding);
  EXPECT_EQ(logits_with("pages:11", decoding), all);
  const std::vector<float> chosen = logits_with("pages:5", decoding);
  EXPECT_NE(chosen, all);
  EXPECT_EQ(std::vector<float>(chosen.begin(), chosen.begin() + 320 * kTestVocab),
            std::vector<float>(all.begin(), all.begin() + 320 * kTestVocab));
  for (const std::size_t page_tokens : {16U, 32U}) {
    for (const std::size_t at_once : {1U, 33U, 500U}) {
      EXPECT_EQ(logits_with("pages:5", {.threads = 3,
                                        .prompt = 200,
                                        .decoded_at_once = at_once,
                                        .page_tokens = page_tokens}),
                chosen)
          << page_tokens << " " << at_once;
    }
  }
  EXPECT_EQ(logits_with("pages:5", {.threads = 2}), logits_with("all", {.threads = 2}));
}

// Caching in 8 bits moves logits a little, whether keys have a bias, which is taken off, or not.
TEST(NumericsOfKv, EightBitsMoveLogitsLittleAndFewerBitsMore) {
  for (const char* architecture : {"llama", "qwen2", "gemma3"}) {
    const TestModel base{.architecture = architecture, .dtype = tensor::DType::kF32, .window = 20};
    const auto logits_with = [&](const char* kv) {
      TestModel model = base;
      model.kv = kv;
      return logits_by(*load(model, kernels::best_level()), {.threads = 2});
    };
    const std::vector<float> exact = logits_with("f16");
    const auto distance = [&](const char* kv) {
      const std::vector<float> logits = logits_with(kv);
      double squares = 0.0;
      double size = 0.0;
      for (std::size_t i = 0; i < logits.size(); ++i) {
        const double d = static_cast<double>(logits[i]) - static_cast<double>(exact[i]);
        squares += d * d;
        size += static_cast<double>(exact[i]) * static_cast<double>(exact[i]);
      }
      return std::sqrt(squares / size);
    };
    const double q8 = distance("q8");
    const double q6 = distance("q6");
    EXPECT_LT(q8, 0.05) << architecture;
    EXPECT_LT(q6, 0.2) << architecture;
    EXPECT_GT(q6, q8) << architecture;
    EXPECT_GT(distance("q4"), q6) << architecture;
  }
}

}  // namespace
}  // namespace cicada::model
