// For tests only: one text through the engine in many ways, each of which must give the bits of the
// plainest one (docs/numerics.md).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cicada/model/test_model.h"

namespace cicada::model {

inline constexpr std::uint32_t kText = 1;   // seeds
inline constexpr std::uint32_t kOther = 2;  // a text that only fills caches

inline std::vector<TokenId> text(std::uint32_t seed, std::size_t length, std::size_t vocab) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<std::int32_t> id(0, static_cast<std::int32_t>(vocab) - 1);
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < length; ++i) ids.emplace_back(id(generator));
  return ids;
}

// How a text goes through the engine.
struct Way {
  std::size_t threads = 1;
  std::vector<std::size_t> chunks = {SIZE_MAX};  // cuts of the prompt, repeated until it ends
  std::size_t batch = 1;          // sequences; the text is the last, the others are ragged
  std::size_t warm_prefix = 0;    // tokens kept from an earlier run that went on differently
  std::size_t prompt = SIZE_MAX;  // tokens after which the rest is decoded, in that role
  std::size_t decoded_at_once = 1;
  std::size_t page_tokens = kv::kPageTokens;

  std::string to_string() const {
    std::string cuts;
    for (const std::size_t cut : chunks)
      cuts += cut == SIZE_MAX ? " whole" : fmt::format(" {}", cut);
    return fmt::format(
        "{} threads, chunks{}, batch of {}, {} tokens warm, prompt of {}, {} decoded at once, "
        "pages of {}",
        threads, cuts, batch, warm_prefix, prompt == SIZE_MAX ? "all" : fmt::format("{}", prompt),
        decoded_at_once, page_tokens);
  }
};

// A text of `length` tokens; logits are compared from position `first_logits` on.
struct Text {
  std::size_t length = 150;
  std::size_t first_logits = 0;
};

// One pass of a text over a model.
class Pass {
 public:
  Pass(const Model& model, const Way& way, const Text& text)
      : way_(way),
        text_(text),
        vocab_(model.config().vocab),
        pool_(way.threads),
        neighbours_(way.batch, 0),
        logits_((text.length - text.first_logits) * vocab_, NAN) {
    auto executor = Executor::create(model, pool_,
                                     {.max_rows = text.length + kMostNeighbourRows * way.batch,
                                      .max_sequences = way.batch,
                                      .max_context = text.length,
                                      .max_logit_rows = text.length});
    const std::size_t pages = (text.length + way.page_tokens - 1) / way.page_tokens * way.batch;
    auto pool = kv::PagePool::create(model.kv_layout(way.page_tokens), pages);
    EXPECT_TRUE(executor.has_value() && pool.has_value());
    executor_ = std::move(*executor);
    pages_ = std::make_unique<kv::PagePool>(std::move(*pool));
    for (std::size_t b = 0; b < way.batch; ++b) {
      owned_.push_back(std::make_unique<kv::Sequence>(*pages_));
      sequences_.push_back(owned_.back().get());
      // The text's own sequence grows as it goes, through pages in any order.
      if (b + 1 == way.batch) break;
      EXPECT_TRUE(owned_[b]->reserve(text.length).has_value());
    }
  }

  // Shapes: result [length - first_logits, vocab]; NaN before the warm prefix.
  std::vector<float> logits() {
    const std::vector<TokenId> ids = text(kText, text_.length, vocab_);
    std::size_t at = 0;
    if (way_.warm_prefix > 0) {
      // Another text with the same beginning fills the cache; its tail must leave no trace.
      std::vector<TokenId> other = text(kOther, text_.length, vocab_);
      std::copy_n(ids.begin(), way_.warm_prefix, other.begin());
      run(other, 0, text_.length);
      sequences_.back()->truncate(way_.warm_prefix);
      at = way_.warm_prefix;
    }
    for (std::size_t i = 0; at < text_.length; ++i) {
      const std::size_t prompt = std::min(way_.prompt, text_.length);
      const std::size_t cut = way_.chunks[i % way_.chunks.size()];
      const std::size_t end = at < prompt ? at + std::min(cut, prompt - at)
                                          : std::min(at + way_.decoded_at_once, text_.length);
      run(ids, at, end);
      at = end;
    }
    return std::move(logits_);
  }

 private:
  static constexpr std::size_t kMostNeighbourRows = 5;

  // Runs [begin, end) of a text as the last sequence of the batch, some rows of each neighbour
  // around it: every other neighbour is in the decode role.
  void run(const std::vector<TokenId>& ids, std::size_t begin, std::size_t end) {
    std::vector<Row> rows;
    for (std::size_t b = 0; b + 1 < way_.batch; ++b) {
      const std::size_t want = 1 + (begin + 3 * b) % kMostNeighbourRows;
      for (std::size_t i = 0; i < want && neighbours_[b] < text_.length; ++i, ++neighbours_[b]) {
        rows.push_back(
            {.token = TokenId(static_cast<std::int32_t>((7 * neighbours_[b] + b) % vocab_)),
             .position = static_cast<std::int64_t>(neighbours_[b]),
             .sequence = static_cast<std::uint32_t>(b),
             .role = b % 2 == 0 ? Role::kPrefill : Role::kDecode});
      }
    }
    ASSERT_TRUE(sequences_.back()->reserve(end).has_value());
    for (std::size_t i = begin; i < end; ++i) {
      rows.push_back({.token = ids[i],
                      .position = static_cast<std::int64_t>(i),
                      .sequence = static_cast<std::uint32_t>(way_.batch - 1),
                      .wants_logits = i >= text_.first_logits,
                      .role = begin < way_.prompt ? Role::kPrefill : Role::kDecode});
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Row& a, const Row& b) { return a.role < b.role; });
    std::span<float> target;
    if (end > text_.first_logits) {
      const std::size_t first = std::max(begin, text_.first_logits) - text_.first_logits;
      target =
          std::span(logits_).subspan(first * vocab_, (end - text_.first_logits - first) * vocab_);
    }
    const auto result = executor_->run(rows, sequences_, target);
    ASSERT_TRUE(result.has_value()) << result.error().to_string();
  }

  const Way& way_;
  const Text& text_;
  std::size_t vocab_;
  platform::ThreadPool pool_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<kv::PagePool> pages_;
  std::vector<std::unique_ptr<kv::Sequence>> owned_;
  std::vector<kv::Sequence*> sequences_;
  std::vector<std::size_t> neighbours_;  // rows of each that have run
  std::vector<float> logits_;
};

inline std::vector<float> logits_by(const Model& model, const Way& way, const Text& text = {}) {
  return Pass(model, way, text).logits();
}

// Rows from position `from` on have equal bits.
inline testing::AssertionResult same_bits(const Model& model, const std::vector<float>& expected,
                                          const std::vector<float>& got, const Text& text,
                                          std::size_t from) {
  const std::size_t vocab = model.config().vocab;
  for (std::size_t row = std::max(from, text.first_logits); row < text.length; ++row) {
    const std::size_t at = (row - text.first_logits) * vocab;
    if (std::memcmp(&got[at], &expected[at], vocab * sizeof(float)) != 0) {
      return testing::AssertionFailure() << "logits of position " << row << " differ";
    }
  }
  return testing::AssertionSuccess();
}

inline void expect_ways(const Model& model, const std::vector<Way>& ways, const Text& text = {}) {
  Way plain;
  plain.prompt = ways.front().prompt;
  const std::vector<float> expected = logits_by(model, plain, text);
  for (const float logit : expected) ASSERT_TRUE(std::isfinite(logit));
  for (const Way& way : ways) {
    EXPECT_TRUE(same_bits(model, expected, logits_by(model, way, text), text, way.warm_prefix))
        << platform::name(model.level()) << ": " << way.to_string();
  }
}

inline const std::vector<std::vector<std::size_t>> kCuts = {
    {SIZE_MAX}, {1}, {7}, {64}, {1, 33, 2, 90}};

// Keys cached in 6 bits without their bias, in heads of two scale groups.
inline TestModel qwen2_kv_q6(std::string policy = "all") {
  return {.architecture = "qwen2",
          .num_layers = 2,
          .hidden = 256,
          .ffn = 256,
          .head_dim = 64,
          .kv = "q6",
          .policy = std::move(policy)};
}

inline void use_cache_of(const TestModel& subject, Model& model) {
  const auto format = parse_kv_format(subject.kv, subject.num_layers);
  ASSERT_TRUE(format.has_value()) << subject.kv;
  model.use_kv(*format);
  model.use_policy(*parse_kv_policy(subject.policy));
}

inline std::unique_ptr<Model> load(const TestModel& subject, platform::IsaLevel level,
                                   bool elide = true) {
  platform::ThreadPool pool(1);
  auto model = load_test_model(test_file(subject), pool, level, elide);
  use_cache_of(subject, *model);
  return model;
}

}  // namespace cicada::model
