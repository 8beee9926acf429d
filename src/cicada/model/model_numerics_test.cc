// The numeric contract (docs/numerics.md): the bits of a row's logits depend on the tokens up to it
// and on numerics_id, never on threads, chunks, neighbours or what the cache held before.
//
// One text goes through the engine in many ways; every way must give the bits of the plainest one.
#include <gtest/gtest.h>

#include "cicada/model/numerics_ways_for_test.h"
#include "cicada/platform/env.h"

namespace cicada::model {
namespace {

using platform::IsaLevel;

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
          {"cicada_v1_kv_q6", {.architecture = "cicada-v1", .rel_pos_dim = 16, .kv = "q6/q4"}},
          {"llama_window_sinks", {.kv = "q8/f16", .policy = "window:40,sinks:3"}}};
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
    use_cache_of(GetParam().model, **kept);
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
      decoding.push_back({.threads = 2, .chunks = {300}, .prompt = 1022, .decoded_at_once = 9});
    }
    expect_ways(*model, ways, text);
    expect_ways(*model, decoding, text);
    if (platform::has_tiles(level) || model->kv_policy().pages > 0) continue;
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
        Subject{"qwen2_kv_q6", qwen2_kv_q6()},
        Subject{"llama_window_300_sinks_600", {.num_layers = 2, .policy = "window:300,sinks:600"}},
        Subject{"qwen2_kv_q6_window_70_sinks_4", qwen2_kv_q6("window:70,sinks:4")},
        Subject{"qwen2_kv_q6_pages_6", qwen2_kv_q6("pages:6")},
        Subject{
            "cicada_v1_pages_5",
            {.architecture = "cicada-v1", .rel_pos_dim = 64, .num_layers = 2, .policy = "pages:5"}},
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
