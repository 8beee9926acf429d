// Reused prefixes and the numeric contract: logits behind a prefix from memory, from a folder or
// shared by two sequences have the bits of a cold run (docs/numerics.md).
#include <gtest/gtest.h>

#include "cicada/kv/prefix_cache.h"
#include "cicada/model/kv_format.h"
#include "cicada/model/test_model.h"
#include "cicada/platform/test_folder.h"

namespace cicada::engine {
namespace {

using model::TestModel;
using platform::IsaLevel;
using Ids = std::vector<TokenId>;
using Logits = std::vector<float>;  // [length, vocab]; NaN where none were asked for

constexpr std::size_t kLength = 150;
constexpr std::size_t kCommon = 70;  // what the two texts begin with

Ids random_ids(std::uint32_t seed, std::size_t length) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<std::int32_t> id(0, model::kTestVocab - 1);
  Ids ids;
  for (std::size_t i = 0; i < length; ++i) ids.emplace_back(id(generator));
  return ids;
}

const Ids kText = random_ids(1, kLength);
const Ids kOther = [] {
  Ids ids = random_ids(2, kLength);
  std::copy_n(kText.begin(), kCommon, ids.begin());
  return ids;
}();

struct Subject {
  const char* name;
  TestModel model;
  const char* kv = "f16";
};

// The window is shorter than the prefix, so rows behind it see it in part; parts are left out.
std::vector<Subject> subjects() {
  const TestModel qwen2{.architecture = "qwen2", .dtype = tensor::DType::kF16};
  const TestModel gemma3{.architecture = "gemma3",
                         .zero = {"blk.1.attn_output.weight", "blk.3.ffn_down.weight",
                                  "blk.5.attn_output.weight", "blk.5.ffn_down.weight"},
                         .num_layers = 7,
                         .window = 20};
  // Its keys are cached without their bias.
  TestModel elided = qwen2;
  elided.zero = {"blk.1.attn_output.weight", "blk.2.ffn_down.weight"};
  return {
      {"llama", {}},
      {"llama_q4", {}, "q4"},
      {"qwen2", qwen2},
      {"qwen2_q6_keys_without_bias_elided", elided, "q6"},
      {"gemma3_windows_elided", gemma3},
      {"gemma3_windows_elided_mixed", gemma3, "q8/q6,2-3:f16"},
      {"cicada_v1_elided",
       {.architecture = "cicada-v1", .zero = {"blk.1.rel_pos_proj.weight"}, .rel_pos_dim = 16}}};
}

struct Way {
  std::size_t threads = 1;
  std::size_t page_tokens = 64;
  std::vector<std::size_t> chunks = {SIZE_MAX};  // cuts of what is computed, repeated
};

// Sequences of one pool, computed by one executor.
class Engine {
 public:
  Engine(const model::Model& model, const Way& way, std::optional<kv::PrefixStore> store = {})
      : way_(way), workers_(way.threads) {
    auto pages = kv::PagePool::create(model.kv_layout(way.page_tokens), 64);
    auto executor = model::Executor::create(model, workers_,
                                            {.max_rows = 2 * kLength,
                                             .max_sequences = 2,
                                             .max_context = kLength,
                                             .max_logit_rows = 2 * kLength});
    EXPECT_TRUE(pages.has_value() && executor.has_value());
    pool_ = std::make_unique<kv::PagePool>(std::move(*pages));
    executor_ = std::move(*executor);
    cache_ = std::make_unique<kv::PrefixCache>(*pool_, std::move(store));
  }

  struct Run {
    std::size_t reused = 0;
    Logits logits;
  };

  // Computes what is not known of texts, all in the same batches; remembers them.
  std::vector<Run> run(const std::vector<Ids>& texts) {
    std::vector<Run> runs(texts.size());
    std::vector<std::unique_ptr<kv::Sequence>> owned;
    std::vector<kv::Sequence*> sequences;
    std::size_t begin = 0;
    for (std::size_t t = 0; t < texts.size(); ++t) {
      auto& sequence = owned.emplace_back(std::make_unique<kv::Sequence>(*pool_));
      sequences.push_back(sequence.get());
      runs[t].reused = std::min(cache_->extend(*sequence, 0, "", texts[t]), kLength - 1);
      runs[t].logits.assign(kLength * model::kTestVocab, NAN);
      begin = runs[t].reused;  // the same for all
      EXPECT_TRUE(sequence->make_writable(begin, kLength).has_value());
      EXPECT_TRUE(sequence->reserve(kLength).has_value());
    }
    for (std::size_t i = 0; begin < kLength; ++i) {
      const std::size_t end =
          begin + std::min(way_.chunks[i % way_.chunks.size()], kLength - begin);
      step(texts, sequences, begin, end, runs);
      begin = end;
    }
    for (std::size_t t = 0; t < texts.size(); ++t) {
      cache_->add(*sequences[t], "", texts[t]);
      cache_->save(*sequences[t], "", texts[t]);
    }
    pool_->check_conservation();
    return runs;
  }

 private:
  void step(const std::vector<Ids>& texts, const std::vector<kv::Sequence*>& sequences,
            std::size_t begin, std::size_t end, std::vector<Run>& runs) {
    std::vector<model::Row> rows;
    for (std::size_t t = 0; t < texts.size(); ++t) {
      for (std::size_t i = begin; i < end; ++i) {
        rows.push_back({.token = texts[t][i],
                        .position = static_cast<std::int64_t>(i),
                        .sequence = static_cast<std::uint32_t>(t),
                        .wants_logits = true});
      }
    }
    Logits logits(rows.size() * model::kTestVocab);
    const auto result = executor_->run(rows, sequences, logits);
    ASSERT_TRUE(result.has_value()) << result.error().to_string();
    const std::size_t count = (end - begin) * model::kTestVocab;
    for (std::size_t t = 0; t < texts.size(); ++t) {
      std::copy_n(&logits[t * count], count, &runs[t].logits[begin * model::kTestVocab]);
    }
  }

  Way way_;
  platform::ThreadPool workers_;
  std::unique_ptr<kv::PagePool> pool_;
  std::unique_ptr<model::Executor> executor_;
  std::unique_ptr<kv::PrefixCache> cache_;
};

// Rows that were computed have the bits of the cold run.
testing::AssertionResult same_bits(const Logits& cold, const Engine::Run& warm) {
  for (std::size_t row = warm.reused; row < kLength; ++row) {
    const std::size_t at = row * model::kTestVocab;
    if (std::memcmp(&cold[at], &warm.logits[at], model::kTestVocab * sizeof(float)) != 0) {
      return testing::AssertionFailure() << "logits of position " << row << " differ";
    }
  }
  return testing::AssertionSuccess();
}

class PrefixNumerics : public testing::TestWithParam<Subject> {
 protected:
  // What a user gets, and what treats roles differently.
  static std::vector<std::unique_ptr<model::Model>> models() {
    std::vector<std::unique_ptr<model::Model>> list;
    platform::ThreadPool pool(1);
    for (const IsaLevel level : kernels::runnable_levels()) {
      if (level != kernels::best_level() && !platform::has_tiles(level)) continue;
      auto model = model::load_test_model(model::test_file(GetParam().model), pool, level);
      auto format = model::parse_kv_format(GetParam().kv, GetParam().model.num_layers);
      EXPECT_TRUE(format.has_value());
      model->use_kv(*format);
      list.push_back(std::move(model));
      EXPECT_EQ(list.back()->plan().elided.empty(), GetParam().model.zero.empty());
    }
    return list;
  }

  static std::vector<Way> ways() {
    std::vector<Way> list;
    for (const std::size_t page_tokens : {16U, 32U, 64U}) {
      list.push_back({.threads = 1, .page_tokens = page_tokens});
      list.push_back({.threads = 2, .page_tokens = page_tokens, .chunks = {1, 33, 2, 90}});
    }
    return list;
  }

  static Logits cold(const model::Model& model, const Ids& text) {
    return Engine(model, {}).run({text})[0].logits;
  }

  std::optional<kv::PrefixStore> store(const model::Model& model, std::size_t page_tokens) {
    auto made =
        kv::PrefixStore::open(model.kv_layout(page_tokens),
                              {.folder = folder_.path() + "/cache",
                               .model_identity = GetParam().name,
                               .numerics_id = model.numerics_id(),
                               .log = [](std::string_view line) { ADD_FAILURE() << line; }});
    EXPECT_TRUE(made.has_value());
    return std::move(*made);
  }

  const platform::TestFolder folder_;
};

TEST_P(PrefixNumerics, APrefixFromMemoryGivesTheBitsOfAColdRun) {
  for (const auto& model : models()) {
    const Logits text = cold(*model, kText);
    const Logits other = cold(*model, kOther);
    for (const Way& way : ways()) {
      Engine engine(*model, way);
      EXPECT_TRUE(same_bits(other, engine.run({kOther})[0]));
      const Engine::Run warm = engine.run({kText})[0];
      // Also in the middle of a page, which was copied.
      EXPECT_EQ(warm.reused, kCommon);
      EXPECT_TRUE(same_bits(text, warm)) << way.page_tokens;
      // Whole hits: neither text has left a trace in the other's pages.
      const std::size_t whole = kLength / way.page_tokens * way.page_tokens;
      for (const auto& [ids, logits] : {std::pair{kText, text}, {kOther, other}}) {
        const Engine::Run again = engine.run({ids})[0];
        EXPECT_EQ(again.reused, whole);
        EXPECT_TRUE(same_bits(logits, again)) << way.page_tokens;
      }
    }
  }
}

TEST_P(PrefixNumerics, APrefixFromAFolderGivesTheBitsOfAColdRun) {
  for (const auto& model : models()) {
    const Logits text = cold(*model, kText);
    for (const Way& way : ways()) {
      // Another process wrote it, with its own cuts and threads.
      Engine(*model, {.threads = 2, .page_tokens = way.page_tokens, .chunks = {40}},
             store(*model, way.page_tokens))
          .run({kOther});
      Engine reader(*model, way, store(*model, way.page_tokens));
      const Engine::Run warm = reader.run({kText})[0];
      // Of a text that was there before, when another way wrote it too, all.
      const std::size_t common = kCommon / way.page_tokens * way.page_tokens;
      const std::size_t whole = kLength / way.page_tokens * way.page_tokens;
      EXPECT_TRUE(warm.reused == common || warm.reused == whole) << warm.reused;
      EXPECT_TRUE(same_bits(text, warm)) << way.page_tokens;
      const Engine::Run again = Engine(*model, way, store(*model, way.page_tokens)).run({kText})[0];
      EXPECT_EQ(again.reused, whole);
      EXPECT_TRUE(same_bits(text, again)) << way.page_tokens;
    }
  }
}

// Two sequences that go on from shared pages in the same batches.
TEST_P(PrefixNumerics, SequencesThatShareAPrefixDoNotDisturbEachOther) {
  for (const auto& model : models()) {
    const Logits text = cold(*model, kText);
    const Logits other = cold(*model, kOther);
    for (const Way& way : ways()) {
      Engine engine(*model, way);
      Ids prefix = kText;
      for (std::size_t i = kCommon; i < kLength; ++i) prefix[i] = TokenId(3);
      engine.run({prefix});
      const std::vector<Engine::Run> runs = engine.run({kText, kOther});
      EXPECT_EQ(runs[0].reused, kCommon);
      EXPECT_EQ(runs[1].reused, kCommon);
      EXPECT_TRUE(same_bits(text, runs[0])) << way.page_tokens;
      EXPECT_TRUE(same_bits(other, runs[1])) << way.page_tokens;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(engine, PrefixNumerics, testing::ValuesIn(subjects()),
                         [](const auto& p) { return std::string(p.param.name); });

}  // namespace
}  // namespace cicada::engine
