// Sequences that hold the same pages: decoded in one batch, where what they share is read once,
// each gets the bits that it gets alone.
#include <gtest/gtest.h>

#include <cstring>

#include "cicada/model/numerics_ways_for_test.h"

namespace cicada::model {
namespace {

constexpr std::size_t kPrompt = 1100;
constexpr std::size_t kEarly = 700;  // where one of them left the others
constexpr std::size_t kForks = 5;

// A prompt in pages that several forks share, and decoding steps over some of them.
class Forks {
 public:
  explicit Forks(const Model& model) : pool_(2), vocab_(model.config().vocab) {
    auto executor = Executor::create(
        model, pool_, {.max_rows = kPrompt, .max_sequences = kForks, .max_context = kPrompt + 8});
    auto pages = kv::PagePool::create(model.kv_layout(16), 6 * kPrompt / 16);
    EXPECT_TRUE(executor.has_value() && pages.has_value());
    executor_ = std::move(*executor);
    pages_ = std::make_unique<kv::PagePool>(std::move(*pages));
    prompt_ = std::make_unique<kv::Sequence>(*pages_);
    EXPECT_TRUE(prompt_->reserve(kPrompt).has_value());
    prefill(*prompt_, 0, kPrompt, kText);
  }

  // Logits [count, vocab] of one token decoded behind each of `count` forks from `first` on; the
  // last fork has another text from kEarly on.
  std::vector<float> decode(std::size_t first, std::size_t count) {
    std::vector<std::unique_ptr<kv::Sequence>> owned;
    std::vector<kv::Sequence*> sequences;
    std::vector<Row> rows;
    for (std::size_t i = first; i < first + count; ++i) {
      owned.push_back(std::make_unique<kv::Sequence>(prompt_->fork()));
      kv::Sequence& own = *owned.back();
      std::size_t length = kPrompt - 3 * i;  // ragged
      if (i + 1 == kForks) {
        own.truncate(kEarly);
        EXPECT_TRUE(own.make_writable(kEarly, kEarly + 64).has_value());
        length = kEarly + 50;
        EXPECT_TRUE(own.reserve(length).has_value());
        prefill(own, kEarly, length, kOther);
      }
      EXPECT_TRUE(own.make_writable(length, length + 1).has_value());
      EXPECT_TRUE(own.reserve(length + 1).has_value());
      sequences.push_back(&own);
      rows.push_back({.token = TokenId(static_cast<std::int32_t>(11 * i + 1)),
                      .position = static_cast<std::int64_t>(length),
                      .sequence = static_cast<std::uint32_t>(i - first),
                      .wants_logits = true,
                      .role = Role::kDecode});
    }
    std::vector<float> logits(count * vocab_);
    EXPECT_TRUE(executor_->run(rows, sequences, logits).has_value());
    return logits;
  }

  std::size_t vocab() const { return vocab_; }

 private:
  void prefill(kv::Sequence& sequence, std::size_t begin, std::size_t end, std::uint32_t seed) {
    const std::vector<TokenId> ids = text(seed, end, vocab_);
    std::vector<Row> rows;
    for (std::size_t i = begin; i < end; ++i) {
      rows.push_back({.token = ids[i], .position = static_cast<std::int64_t>(i)});
    }
    kv::Sequence* const sequences[] = {&sequence};
    EXPECT_TRUE(executor_->run(rows, sequences, {}).has_value());
  }

  platform::ThreadPool pool_;
  std::size_t vocab_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<kv::PagePool> pages_;
  std::unique_ptr<kv::Sequence> prompt_;
};

TEST(NumericsOfSharedPages, AreThoseOfEachSequenceAlone) {
  const std::vector<TestModel> models = {{.num_layers = 2},
                                         qwen2_kv_q6(),
                                         {.num_layers = 2, .kv = "q8/q4", .policy = "pages:6"},
                                         {.num_layers = 2, .policy = "window:300,sinks:520"},
                                         {.architecture = "gemma3", .num_layers = 7, .window = 20}};
  for (const platform::IsaLevel level : kernels::runnable_levels()) {
    for (const TestModel& subject : models) {
      const auto model = load(subject, level);
      Forks forks(*model);
      const std::vector<float> together = forks.decode(0, kForks);
      for (std::size_t i = 0; i < kForks; ++i) {
        const std::vector<float> alone = forks.decode(i, 1);
        EXPECT_EQ(
            std::memcmp(alone.data(), &together[i * forks.vocab()], forks.vocab() * sizeof(float)),
            0)
            << platform::name(level) << " " << subject.architecture << " " << subject.kv << " "
            << subject.policy << ", fork " << i;
      }
    }
  }
}

}  // namespace
}  // namespace cicada::model
