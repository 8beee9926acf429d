// The numeric contract (docs/numerics.md): the bits of a row's logits depend on the tokens up to it
// and on numerics_id, never on threads, chunks, neighbours or what the cache held before.
#include <gtest/gtest.h>

#include "cicada/model/test_model.h"

namespace cicada::model {
namespace {

constexpr std::size_t kTokens = 150;

std::vector<TokenId> text(std::uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<std::int32_t> id(0, kTestVocab - 1);
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < kTokens; ++i) ids.emplace_back(id(generator));
  return ids;
}

// How a text goes through the engine.
struct Way {
  std::size_t threads = 1;
  std::vector<std::size_t> chunks = {kTokens};  // repeated until the text ends
  std::size_t batch = 1;        // sequences; the text is the last, others are ragged
  std::size_t warm_prefix = 0;  // tokens kept from an earlier run that went on differently
};

// Runs [begin, end) of the text as the last sequence of the batch, its logits into `logits`.
void run_chunk(Executor& executor, const std::vector<TokenId>& ids, std::size_t begin,
               std::size_t end, std::vector<std::size_t>& neighbours,
               std::vector<kv::Sequence*>& sequences, std::span<float> logits) {
  std::vector<Row> rows;
  for (std::size_t b = 0; b + 1 < sequences.size(); ++b) {
    const std::size_t want = 1 + (begin + 3 * b) % 5;
    for (std::size_t i = 0; i < want && neighbours[b] < kTokens; ++i, ++neighbours[b]) {
      rows.push_back(
          {.token = TokenId(static_cast<std::int32_t>((7 * neighbours[b] + b) % kTestVocab)),
           .position = static_cast<std::int64_t>(neighbours[b]),
           .sequence = static_cast<std::uint32_t>(b)});
    }
  }
  for (std::size_t i = begin; i < end; ++i) {
    rows.push_back({.token = ids[i],
                    .position = static_cast<std::int64_t>(i),
                    .sequence = static_cast<std::uint32_t>(sequences.size() - 1),
                    .wants_logits = true});
  }
  const auto result =
      executor.run(rows, sequences, logits.subspan(begin * kTestVocab, (end - begin) * kTestVocab));
  ASSERT_TRUE(result.has_value()) << result.error().to_string();
}

std::vector<float> logits_by(const std::string& file, platform::IsaLevel level, const Way& way,
                             bool elide = true) {
  platform::ThreadPool pool(way.threads);
  const auto model = load_test_model(file, pool, level, elide);
  auto executor = Executor::create(*model, pool,
                                   {.max_rows = kTokens + 5 * way.batch,
                                    .max_sequences = way.batch,
                                    .max_context = kTokens,
                                    .max_logit_rows = kTokens});
  auto pages = kv::PagePool::create(model->kv_shape(), 3 * way.batch);
  std::vector<std::unique_ptr<kv::Sequence>> owned;
  std::vector<kv::Sequence*> sequences;
  for (std::size_t b = 0; b < way.batch; ++b) {
    owned.push_back(std::make_unique<kv::Sequence>(*pages));
    EXPECT_TRUE(owned.back()->reserve(kTokens).has_value());
    sequences.push_back(owned.back().get());
  }
  const std::vector<TokenId> ids = text(1);
  std::vector<std::size_t> neighbours(way.batch, 0);
  std::vector<float> logits(kTokens * kTestVocab, NAN);
  std::size_t at = 0;
  if (way.warm_prefix > 0) {
    // Another text with the same beginning fills the cache; its tail must leave no trace.
    std::vector<TokenId> other = text(2);
    std::copy_n(ids.begin(), way.warm_prefix, other.begin());
    run_chunk(**executor, other, 0, kTokens, neighbours, sequences, logits);
    at = way.warm_prefix;
  }
  for (std::size_t i = 0; at < kTokens; ++i) {
    const std::size_t end = std::min(kTokens, at + way.chunks[i % way.chunks.size()]);
    run_chunk(**executor, ids, at, end, neighbours, sequences, logits);
    at = end;
  }
  return logits;
}

std::vector<Way> ways(platform::IsaLevel level) {
  const std::vector<std::vector<std::size_t>> cuts = {{kTokens}, {1}, {7}, {64}, {1, 33, 2, 90}};
  std::vector<Way> list = {{.threads = 3, .chunks = cuts[4], .batch = 3},
                           {.threads = 1, .chunks = cuts[2], .batch = 17},
                           {.threads = 2, .chunks = cuts[4], .warm_prefix = 70}};
  // The slowest level takes these only.
  if (level == platform::IsaLevel::kScalar) return list;
  for (const auto& chunks : cuts) {
    for (const std::size_t threads : {1U, 2U}) {
      for (const std::size_t batch : {1U, 3U, 17U}) {
        list.push_back({.threads = threads, .chunks = chunks, .batch = batch});
      }
      list.push_back({.threads = threads, .chunks = chunks, .warm_prefix = 70});
    }
  }
  return list;
}

struct Subject {
  const char* name;
  TestModel model;
};

std::vector<Subject> subjects() {
  using tensor::DType;
  return {{"llama_q8_0", {}},
          {"llama_q4_0", {.dtype = DType::kQ4_0}},
          {"llama_f32", {.dtype = DType::kF32}},
          {"qwen2_f16", {.architecture = "qwen2", .dtype = DType::kF16}},
          {"gemma3_q8_0", {.architecture = "gemma3", .num_layers = 7, .window = 20}},
          {"cicada_v1_q8_0", {.architecture = "cicada-v1", .rel_pos_dim = 16}}};
}

class Numerics : public testing::TestWithParam<Subject> {};

TEST_P(Numerics, BitsDependOnNeitherThreadsNorChunksNorNeighboursNorTheCachesPast) {
  const std::string file = test_file(GetParam().model);
  for (const platform::IsaLevel level : kernels::runnable_levels()) {
    const std::vector<float> expected = logits_by(file, level, {});
    for (const float logit : expected) ASSERT_TRUE(std::isfinite(logit));
    for (const Way& way : ways(level)) {
      const std::vector<float> logits = logits_by(file, level, way);
      const std::size_t first = way.warm_prefix * kTestVocab;
      ASSERT_EQ(
          std::memcmp(&logits[first], &expected[first], (logits.size() - first) * sizeof(float)), 0)
          << platform::name(level) << ", " << way.threads << " threads, first chunk "
          << way.chunks[0] << ", batch of " << way.batch << ", warm " << way.warm_prefix;
    }
  }
}

// A by-product of one order for all levels, not a promise: a level may leave it on purpose, with a
// note in docs/numerics.md.
TEST_P(Numerics, LevelsOfThisVersionGiveEqualBits) {
  const std::string file = test_file(GetParam().model);
  const auto levels = kernels::runnable_levels();
  const std::vector<float> expected = logits_by(file, levels.front(), {.threads = 2});
  for (const platform::IsaLevel level : levels) {
    const std::vector<float> logits = logits_by(file, level, {.threads = 2});
    EXPECT_EQ(std::memcmp(logits.data(), expected.data(), logits.size() * sizeof(float)), 0)
        << platform::name(level);
  }
}

INSTANTIATE_TEST_SUITE_P(numerics, Numerics, testing::ValuesIn(subjects()),
                         [](const auto& p) { return std::string(p.param.name); });

TEST(NumericsElision, ElidedAndNotAreEqualWithMinusZeroAsZero) {
  const TestModel subject = {.zero = {"blk.0.attn_output.weight", "blk.1.ffn_down.weight",
                                      "blk.2.attn_output.weight", "blk.2.ffn_down.weight"},
                             .num_layers = 4};
  const std::string file = test_file(subject);
  for (const platform::IsaLevel level : kernels::runnable_levels()) {
    const std::vector<float> elided = logits_by(file, level, {.threads = 2}, true);
    const std::vector<float> whole = logits_by(file, level, {.threads = 2}, false);
    for (std::size_t i = 0; i < whole.size(); ++i) ASSERT_EQ(elided[i], whole[i]) << i;
  }
}

TEST(NumericsElision, AZeroPositionTableIsAsNone) {
  TestModel with = {.architecture = "cicada-v1", .rel_pos_dim = 16};
  for (std::uint32_t i = 0; i < with.num_layers; ++i) {
    with.zero.insert("blk." + std::to_string(i) + ".rel_pos_proj.weight");
  }
  const TestModel without = {.architecture = "cicada-v1"};
  for (const platform::IsaLevel level : kernels::runnable_levels()) {
    const std::vector<float> expected = logits_by(test_file(without), level, {});
    for (const bool elide : {true, false}) {
      const std::vector<float> logits = logits_by(test_file(with), level, {}, elide);
      for (std::size_t i = 0; i < logits.size(); ++i) ASSERT_EQ(logits[i], expected[i]);
    }
  }
}

}  // namespace
}  // namespace cicada::model
