// The numeric contract (docs/numerics.md): the bits of a row's logits depend on the tokens up to it
// and on numerics_id, never on threads, chunks, neighbours or what the cache held before.
//
// One text goes through the engine in many ways; every way must give the bits of the plainest one.
#include <gtest/gtest.h>

#include "cicada/model/test_model.h"
#include "cicada/platform/env.h"

namespace cicada::model {
namespace {

using platform::IsaLevel;

constexpr std::uint32_t kText = 1;   // seeds
constexpr std::uint32_t kOther = 2;  // a text that only fills caches

std::vector<TokenId> text(std::uint32_t seed, std::size_t length, std::size_t vocab) {
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
  std::size_t batch = 1;        // sequences; the text is the last, the others are ragged
  std::size_t warm_prefix = 0;  // tokens kept from an earlier run that went on differently
  std::size_t prompt =
      SIZE_MAX;  // tokens after which the rest is decoded one at a time, in that role
  std::size_t page_tokens = kv::kPageTokens;

  std::string to_string() const {
    std::string cuts;
    for (const std::size_t cut : chunks)
      cuts += cut == SIZE_MAX ? " whole" : fmt::format(" {}", cut);
    return fmt::format(
        "{} threads, chunks{}, batch of {}, {} tokens warm, prompt of {}, pages of {}", threads,
        cuts, batch, warm_prefix, prompt == SIZE_MAX ? "all" : fmt::format("{}", prompt),
        page_tokens);
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
      const std::size_t end = at < prompt ? at + std::min(cut, prompt - at) : at + 1;
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

std::vector<float> logits_by(const Model& model, const Way& way, const Text& text = {}) {
  return Pass(model, way, text).logits();
}

// Rows from position `from` on have equal bits.
testing::AssertionResult same_bits(const Model& model, const std::vector<float>& expected,
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

void expect_ways(const Model& model, const std::vector<Way>& ways, const Text& text = {}) {
  Way plain;
  plain.prompt = ways.front().prompt;
  const std::vector<float> expected = logits_by(model, plain, text);
  for (const float logit : expected) ASSERT_TRUE(std::isfinite(logit));
  for (const Way& way : ways) {
    EXPECT_TRUE(same_bits(model, expected, logits_by(model, way, text), text, way.warm_prefix))
        << platform::name(model.level()) << ": " << way.to_string();
  }
}

const std::vector<std::vector<std::size_t>> kCuts = {{SIZE_MAX}, {1}, {7}, {64}, {1, 33, 2, 90}};

// What would be chosen, and what treats roles differently.
bool is_best(IsaLevel level) {
  return level == kernels::best_level() || platform::has_tiles(level);
}

// What every level takes.
std::vector<Way> few_ways() {
  return {{.threads = 3, .chunks = kCuts[4], .batch = 3},
          {.threads = 1, .chunks = kCuts[2], .batch = 17},
          {.threads = 2, .chunks = kCuts[4], .warm_prefix = 70},
          {.threads = 2, .chunks = kCuts[4], .batch = 2, .page_tokens = 16}};
}

// What the best level takes: levels share the code that cuts work, so once is enough.
std::vector<Way> all_ways() {
  std::vector<Way> list = few_ways();
  for (const auto& chunks : kCuts) {
    for (const std::size_t threads : {1U, 2U}) {
      for (const std::size_t batch : {1U, 3U, 17U}) {
        list.push_back({.threads = threads, .chunks = chunks, .batch = batch});
      }
      list.push_back({.threads = threads, .chunks = chunks, .batch = 3, .warm_prefix = 70});
    }
  }
  list.push_back({.threads = 3});
  list.push_back({.threads = 2, .chunks = kCuts[2], .batch = 3, .page_tokens = 32});
  list.push_back({.threads = 3, .chunks = kCuts[2], .batch = 17, .warm_prefix = 7});
  return list;
}

struct Subject {
  const char* name;
  TestModel model;
};

std::vector<Subject> subjects() {
  using tensor::DType;
  TestModel wide{.num_layers = 2, .hidden = 256, .ffn = 256, .head_dim = 64};
  const auto of_type = [](TestModel model, DType dtype) {
    model.dtype = dtype;
    return model;
  };
  return {{"llama_q8_0", {}},
          {"llama_q4_0", {.dtype = DType::kQ4_0}},
          {"llama_q4_1", {.dtype = DType::kQ4_1}},
          {"llama_q5_0", {.dtype = DType::kQ5_0}},
          {"llama_q4_k", of_type(wide, DType::kQ4_K)},
          {"llama_q6_k", of_type(wide, DType::kQ6_K)},
          {"llama_f32", {.dtype = DType::kF32}},
          {"qwen2_f16", {.architecture = "qwen2", .dtype = DType::kF16}},
          {"gemma3_q8_0", {.architecture = "gemma3", .num_layers = 7, .window = 20}},
          {"cicada_v1_q8_0", {.architecture = "cicada-v1", .rel_pos_dim = 16}},
          // Keys without their bias, windows, elided layers, layers and values of another width.
          {"qwen2_kv_q8", {.architecture = "qwen2", .kv = "q8"}},
          {"qwen2_kv_q6",
           {.architecture = "qwen2",
            .dtype = DType::kF32,
            .zero = {"blk.1.attn_output.weight", "blk.1.ffn_down.weight"},
            .kv = "q6,0:f16"}},
          {"gemma3_kv_q4",
           {.architecture = "gemma3", .num_layers = 7, .window = 20, .kv = "q4,3:q8/q6"}},
          {"cicada_v1_kv_q6", {.architecture = "cicada-v1", .rel_pos_dim = 16, .kv = "q6/q4"}}};
}

std::unique_ptr<Model> load(const TestModel& subject, IsaLevel level, bool elide = true) {
  platform::ThreadPool pool(1);
  auto model = load_test_model(test_file(subject), pool, level, elide);
  const auto format = parse_kv_format(subject.kv, subject.num_layers);
  EXPECT_TRUE(format.has_value()) << subject.kv;
  model->use_kv(*format);
  return model;
}

class Numerics : public testing::TestWithParam<Subject> {};

TEST_P(Numerics, BitsDependOnNeitherThreadsNorChunksNorNeighboursNorTheCachesPast) {
  for (const IsaLevel level : kernels::runnable_levels()) {
    expect_ways(*load(GetParam().model, level), is_best(level) ? all_ways() : few_ways());
  }
}

// The decode role: a prompt, then a token at a time, alone and beside others.
TEST_P(Numerics, DecodedBitsDependOnNeitherThreadsNorNeighboursNorThePromptsCuts) {
  for (const IsaLevel level : kernels::runnable_levels()) {
    std::vector<Way> ways = {{.threads = 3, .chunks = kCuts[4], .batch = 3, .prompt = 130}};
    for (const std::size_t batch : {1U, 2U, 17U}) {
      if (!is_best(level)) break;
      ways.push_back({.threads = 1, .chunks = kCuts[3], .batch = batch, .prompt = 130});
      ways.push_back({.threads = 2, .chunks = kCuts[3], .batch = batch, .prompt = 130});
    }
    expect_ways(*load(GetParam().model, level), ways, {.first_logits = 129});
  }
}

// A by-product of one kernel for both roles, not a promise: tiles have left it (docs/numerics.md).
TEST_P(Numerics, RolesWithoutTilesGiveEqualBits) {
  const Text text;
  for (const IsaLevel level : kernels::runnable_levels()) {
    if (platform::has_tiles(level)) continue;
    const auto model = load(GetParam().model, level);
    const std::vector<float> prefilled = logits_by(*model, {}, text);
    const std::vector<float> decoded = logits_by(*model, {.threads = 2, .prompt = 20}, text);
    EXPECT_TRUE(same_bits(*model, prefilled, decoded, text, 0)) << platform::name(level);
  }
}

// A by-product of one order for all levels, not a promise, as above.
TEST_P(Numerics, LevelsGiveEqualBitsInTheDecodeRoleAndWithoutTilesInBoth) {
  const Text text;
  const auto levels = kernels::runnable_levels();
  const std::vector<float> expected = logits_by(*load(GetParam().model, levels.front()), {}, text);
  for (const IsaLevel level : levels) {
    const auto model = load(GetParam().model, level);
    const Way decoding{.threads = 2, .prompt = 0};
    EXPECT_TRUE(same_bits(*model, expected, logits_by(*model, decoding, text), text, 0))
        << platform::name(level);
    if (platform::has_tiles(level)) continue;
    EXPECT_TRUE(same_bits(*model, expected, logits_by(*model, {.threads = 2}, text), text, 0))
        << platform::name(level);
  }
}

// The instructions and their emulation, where a processor has both.
TEST_P(Numerics, EmulatedTilesGiveTheBitsOfTiles) {
  const Text text;
  std::vector<float> expected;
  for (const IsaLevel level : kernels::runnable_levels()) {
    if (!platform::has_tiles(level)) continue;
    const auto model = load(GetParam().model, level);
    const std::vector<float> logits = logits_by(*model, {.threads = 2}, text);
    if (expected.empty()) expected = logits;
    EXPECT_TRUE(same_bits(*model, expected, logits, text, 0)) << platform::name(level);
  }
}

TEST_P(Numerics, PanelsThatAreKeptGiveTheSameBits) {
  const Text text;
  platform::ThreadPool pool(2);
  const auto file = formats::open_bytes(test_file(GetParam().model));
  ASSERT_TRUE(file.has_value());
  for (const IsaLevel level : kernels::runnable_levels()) {
    if (!platform::has_tiles(level)) continue;
    const auto kept = Model::load(*file, pool, {.level = level, .load = {}, .keep_panels = true});
    ASSERT_TRUE(kept.has_value());
    const bool is_wide = GetParam().model.dtype == tensor::DType::kF32 ||
                         GetParam().model.dtype == tensor::DType::kF16;
    EXPECT_EQ((*kept)->weights().panel_bytes() == 0, is_wide);
    const std::vector<float> expected = logits_by(*load(GetParam().model, level), {}, text);
    EXPECT_TRUE(same_bits(**kept, expected, logits_by(**kept, {.threads = 2}, text), text, 0));
  }
}

INSTANTIATE_TEST_SUITE_P(numerics, Numerics, testing::ValuesIn(subjects()),
                         [](const auto& p) { return std::string(p.param.name); });

// Past 512 keys a row's attention is made of splits that several workers may share.
class LongNumerics : public testing::TestWithParam<Subject> {};

TEST_P(LongNumerics, BitsDependOnNothingAcrossSplitsOfTheKeys) {
  const Text text{.length = 1100, .first_logits = 1020};
  for (const IsaLevel level : kernels::runnable_levels()) {
    const auto model = load(GetParam().model, level);
    std::vector<Way> ways = {{.threads = 2, .chunks = {500, 13}}};
    std::vector<Way> decoding = {{.threads = 2, .chunks = {512}, .batch = 2, .prompt = 1022}};
    if (is_best(level)) {
      ways.push_back({.threads = 3, .chunks = {511, 2}, .warm_prefix = 600});
      ways.push_back({.threads = 1, .chunks = {64}, .batch = 3});
      for (const std::size_t threads : {1U, 2U, 3U}) {
        decoding.push_back({.threads = threads, .chunks = {256}, .prompt = 1022});
      }
      decoding.push_back({.threads = 2, .chunks = {300}, .batch = 9, .prompt = 1022});
    }
    expect_ways(*model, ways, text);
    expect_ways(*model, decoding, text);
    if (platform::has_tiles(level)) continue;
    const std::vector<float> prefilled = logits_by(*model, {}, text);
    const std::vector<float> decoded = logits_by(*model, {.prompt = 1022}, text);
    EXPECT_TRUE(same_bits(*model, prefilled, decoded, text, 0)) << platform::name(level);
  }
}

INSTANTIATE_TEST_SUITE_P(
    numerics, LongNumerics,
    testing::Values(
        Subject{"llama_q8_0", {.num_layers = 2}},
        Subject{"gemma3_window_530", {.architecture = "gemma3", .num_layers = 6, .window = 530}},
        Subject{"cicada_v1", {.architecture = "cicada-v1", .rel_pos_dim = 64, .num_layers = 2}},
        Subject{"qwen2_kv_q6",
                {.architecture = "qwen2",
                 .num_layers = 2,
                 .hidden = 256,
                 .ffn = 256,
                 .head_dim = 64,
                 .kv = "q6"}},
        Subject{"gemma3_kv_q8_window_530",
                {.architecture = "gemma3", .num_layers = 6, .window = 530, .kv = "q8/q4"}}),
    [](const auto& p) { return std::string(p.param.name); });

TEST(NumericsElision, ElidedAndNotAreEqualWithMinusZeroAsZero) {
  const TestModel subject = {.zero = {"blk.0.attn_output.weight", "blk.1.ffn_down.weight",
                                      "blk.2.attn_output.weight", "blk.2.ffn_down.weight"},
                             .num_layers = 4};
  for (const IsaLevel level : kernels::runnable_levels()) {
    const auto elided = load(subject, level, true);
    const auto whole = load(subject, level, false);
    ASSERT_LT(elided->plan().steps.size(), whole->plan().steps.size());
    const Way decoding{.threads = 2, .chunks = kCuts[3], .batch = 3, .prompt = 100};
    for (const Way& way : {few_ways()[0], decoding}) {
      const std::vector<float> expected = logits_by(*whole, way);
      const std::vector<float> got = logits_by(*elided, way);
      for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], expected[i]) << i;
    }
  }
}

TEST(NumericsElision, AZeroPositionTableIsAsNone) {
  TestModel with = {.architecture = "cicada-v1", .rel_pos_dim = 16};
  for (std::uint32_t i = 0; i < with.num_layers; ++i) {
    with.zero.insert("blk." + std::to_string(i) + ".rel_pos_proj.weight");
  }
  const TestModel without = {.architecture = "cicada-v1"};
  for (const IsaLevel level : kernels::runnable_levels()) {
    const std::vector<float> expected = logits_by(*load(without, level), {});
    for (const bool elide : {true, false}) {
      const std::vector<float> logits = logits_by(*load(with, level, elide), {});
      for (std::size_t i = 0; i < logits.size(); ++i) ASSERT_EQ(logits[i], expected[i]);
    }
  }
}

// The same with real weights. Slow levels take a short text.
TEST(NumericsOfSmolLM2, BitsDependOnNeitherThreadsNorChunksNorNeighboursNorTheCachesPast) {
  const auto home = platform::environment_variable("CICADA_HOME");
  const std::string folder =
      home ? *home : platform::environment_variable("HOME").value_or("") + "/.cache/cicada";
  const auto file = formats::ModelFile::open(folder + "/models/smollm2.gguf");
  if (!file) GTEST_SKIP() << "no model smollm2: " << file.error().message();
  platform::ThreadPool pool(2);
  for (const IsaLevel level : kernels::runnable_levels()) {
    const auto model = Model::load(*file, pool, {.level = level, .load = {}});
    ASSERT_TRUE(model.has_value()) << model.error().to_string();
    if (level == IsaLevel::kScalar || level == IsaLevel::kAmxEmulated) {
      const Text text{.length = 6};
      expect_ways(**model, {{.threads = 2, .chunks = {1, 3}, .batch = 2}}, text);
      continue;
    }
    const Text text{.first_logits = 120};
    std::vector<Way> ways = {{.threads = 2, .chunks = kCuts[4], .batch = 3}};
    if (is_best(level)) {
      ways.push_back({.threads = 1, .chunks = kCuts[1]});
      ways.push_back({.threads = 2, .chunks = kCuts[3], .batch = 17});
      ways.push_back({.threads = 3, .chunks = kCuts[2], .warm_prefix = 70});
    }
    expect_ways(**model, ways, text);
  }
}

}  // namespace
}  // namespace cicada::model
