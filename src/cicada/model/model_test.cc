#include "cicada/model/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <set>

#include "cicada/model/executor.h"
#include "cicada/model/test_model.h"

namespace cicada::model {
namespace {

constexpr platform::IsaLevel kLevel = platform::IsaLevel::kScalar;

std::string refusal(const std::string& bytes) {
  platform::ThreadPool pool(1);
  const auto file = formats::open_bytes(bytes);
  if (!file) return file.error().to_string();
  const auto model = Model::load(*file, pool, {.level = kLevel, .load = {}});
  return model ? std::string() : model.error().to_string();
}

// Metadata of a small model with one key put in place of its own, or added; the keys that matter
// to its architecture are there.
class Changed {
 public:
  explicit Changed(std::string architecture = "llama") : prefix_(architecture + ".") {
    builder_.key_string("general.architecture", architecture);
  }

  Changed& with(const std::string& key, formats::MetaType type, const formats::Bytes& value) {
    builder_.key(prefix_ + key, type, value);
    changed_.insert(key);
    return *this;
  }
  Changed& with(const std::string& key, std::uint32_t value) {
    return with(key, formats::MetaType::kU32, formats::Bytes().number(value));
  }
  Changed& with(const std::string& key, float value) {
    return with(key, formats::MetaType::kF32, formats::Bytes().number(value));
  }
  Changed& with(const std::string& key, const char* value) {
    return with(key, formats::MetaType::kString, formats::Bytes().string(value));
  }
  Changed& without(const std::string& key) {
    changed_.insert(key);
    return *this;
  }

  // What is said about it.
  std::string refusal() {
    const auto config = read();
    return config ? std::string() : config.error().to_string();
  }

  // What its last layer divides positions by; NaN when it is refused.
  double rope_factor() {
    const auto config = read();
    return config ? config->layers.back().rope_factor : std::nan("");
  }

 private:
  Result<Config> read() {
    const TestModel m;
    const std::pair<const char*, std::uint32_t> usual[] = {
        {"block_count", m.num_layers},        {"context_length", 2048},
        {"embedding_length", m.hidden},       {"feed_forward_length", m.ffn},
        {"attention.head_count", kTestHeads}, {"attention.head_count_kv", kTestKvHeads},
        {"attention.sliding_window", 20}};
    for (const auto& [key, value] : usual) {
      if (!changed_.contains(key)) builder_.key_u32(prefix_ + key, value);
    }
    if (!changed_.contains("attention.layer_norm_rms_epsilon")) {
      builder_.key_f32(prefix_ + "attention.layer_norm_rms_epsilon", 1e-5F);
    }
    add_test_matrix(builder_, m, "token_embd.weight", kTestVocab, m.hidden);
    const auto file = formats::open_bytes(builder_.build());
    if (!file) return fail(file.error());
    return read_config(*file);
  }

  std::string prefix_;
  formats::GgufBuilder builder_;
  std::set<std::string> changed_;
};

// Refused in one line that has every one of these parts.
void expect_refusal(const std::string& message, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts) EXPECT_TRUE(formats::has(message, part));
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

TEST(Config, IsReadWhereNothingIsWrong) {
  for (const char* name : {"llama", "qwen2", "gemma3", "cicada-v1"}) {
    EXPECT_EQ(Changed(name).refusal(), "") << name;
  }
}

TEST(Config, NumbersOutOfRangeAreNamedWithWhatIsAllowed) {
  const std::pair<const char*, std::uint32_t> cases[] = {{"block_count", 0},
                                                         {"block_count", 1U << 20},
                                                         {"block_count", 0xFFFFFFFFU},
                                                         {"embedding_length", 0},
                                                         {"embedding_length", 0x80000000U},
                                                         {"feed_forward_length", 0},
                                                         {"feed_forward_length", 0xFFFFFFFFU},
                                                         {"attention.head_count", 0},
                                                         {"attention.head_count", 0xFFFFFFFFU},
                                                         {"attention.head_count_kv", 0},
                                                         {"context_length", 0},
                                                         {"context_length", 0xFFFFFFFFU},
                                                         {"rope.dimension_count", 0},
                                                         {"rope.dimension_count", 999},
                                                         {"attention.key_length", 1},
                                                         {"attention.key_length", 1U << 20},
                                                         {"attention.value_length", 0}};
  for (const auto& [key, value] : cases) {
    expect_refusal(Changed().with(key, value).refusal(),
                   {std::string("llama.") + key, std::to_string(value), "is allowed"});
  }
  const std::pair<const char*, float> numbers[] = {
      {"attention.layer_norm_rms_epsilon", 0.0F},
      {"attention.layer_norm_rms_epsilon", -1e-5F},
      {"attention.layer_norm_rms_epsilon", std::numeric_limits<float>::quiet_NaN()},
      {"attention.layer_norm_rms_epsilon", std::numeric_limits<float>::infinity()},
      {"rope.freq_base", 0.0F},
      {"rope.freq_base", -10000.0F},
      {"rope.freq_base", std::numeric_limits<float>::quiet_NaN()}};
  for (const auto& [key, value] : numbers) {
    expect_refusal(Changed().with(key, value).refusal(),
                   {std::string("llama.") + key, "is allowed"});
  }
}

TEST(Config, NumbersThatDoNotFitTogetherAreRefused) {
  expect_refusal(Changed().with("attention.head_count_kv", 3U).refusal(),
                 {"4 heads", "multiple", "3 KV heads"});
  expect_refusal(Changed().with("rope.dimension_count", 3U).refusal(), {"RoPE dimension 3", "odd"});
  // 64 does not divide by 3 heads, and nothing else says how wide a head is.
  expect_refusal(
      Changed().with("attention.head_count", 3U).with("attention.head_count_kv", 3U).refusal(),
      {"llama.attention.key_length", "missing"});
  expect_refusal(Changed().with("expert_count", 8U).refusal(), {"experts", "not built"});
  expect_refusal(Changed().with("rope.scaling.type", "yarn").refusal(), {"'yarn'", "linear"});
  expect_refusal(Changed("gemma3").with("attention.sliding_window", 0U).refusal(),
                 {"gemma3.attention.sliding_window", "is allowed"});
  expect_refusal(Changed("cicada-v1").with("rel_pos_dim", 7U).refusal(),
                 {"cicada-v1.rel_pos_dim", "7", "even"});
  expect_refusal(Changed("cicada-v1").with("rel_pos_dim", 1U << 20).refusal(),
                 {"cicada-v1.rel_pos_dim", "is allowed"});
  // ln(max / h) must be above 0.
  expect_refusal(
      Changed("cicada-v1").with("rel_pos_dim", 16U).with("rel_pos_max_distance", 8U).refusal(),
      {"cicada-v1.rel_pos_max_distance", "8", "is allowed"});
}

// As llama.cpp reads them: without a type scaling is linear, and the older key stands in.
TEST(Config, RopeScalingIsReadWhateverKeysSayIt) {
  const char* const type = "rope.scaling.type";
  const char* const factor = "rope.scaling.factor";
  const char* const old_factor = "rope.scale_linear";
  EXPECT_EQ(Changed().rope_factor(), 1.0);
  EXPECT_EQ(Changed().with(factor, 4.0F).rope_factor(), 4.0);
  EXPECT_EQ(Changed().with(old_factor, 4.0F).rope_factor(), 4.0);
  EXPECT_EQ(Changed().with(factor, 4.0F).with(old_factor, 8.0F).rope_factor(), 4.0);
  EXPECT_EQ(Changed().with(type, "linear").with(factor, 4.0F).rope_factor(), 4.0);
  EXPECT_EQ(Changed().with(type, "linear").with(old_factor, 4.0F).rope_factor(), 4.0);
  EXPECT_EQ(Changed().with(type, "linear").rope_factor(), 1.0);
  EXPECT_EQ(Changed().with(type, "none").with(factor, 4.0F).rope_factor(), 1.0);
  EXPECT_EQ(Changed().with(type, "none").with(old_factor, 4.0F).rope_factor(), 1.0);
  EXPECT_EQ(Changed().with(factor, 0.0F).rope_factor(), 1.0);
  EXPECT_EQ(Changed().with(factor, 0.0F).with(old_factor, 8.0F).rope_factor(), 1.0);
  EXPECT_EQ(Changed().with("rope.scaling.attn_factor", 1.0F).rope_factor(), 1.0);
  // Gemma 3's layers with a window keep a RoPE of their own; the sixth has none.
  EXPECT_EQ(Changed("gemma3").with(factor, 8.0F).with("block_count", 5U).rope_factor(), 1.0);
  EXPECT_EQ(Changed("gemma3").with(factor, 8.0F).with("block_count", 6U).rope_factor(), 8.0);
}

TEST(Config, RopeScalingThatMakesNoSenseIsNamed) {
  constexpr float kBad[] = {-1.0F, 1e-9F, std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::infinity()};
  for (const char* key : {"rope.scaling.factor", "rope.scale_linear"}) {
    for (const float bad : kBad) {
      expect_refusal(Changed().with(key, bad).refusal(),
                     {std::string("llama.") + key, "is allowed"});
    }
    expect_refusal(Changed().with(key, "4").refusal(), {std::string("llama.") + key});
  }
  expect_refusal(Changed().with("rope.scaling.attn_factor", 0.5F).refusal(),
                 {"llama.rope.scaling.attn_factor", "0.5"});
}

TEST(Config, KeysOfAWrongTypeAreNamed) {
  for (const char* key : {"block_count", "embedding_length", "attention.head_count",
                          "attention.head_count_kv", "rope.dimension_count"}) {
    expect_refusal(Changed().with(key, "4").refusal(), {std::string("llama.") + key});
    expect_refusal(Changed().with(key, 4.5F).refusal(), {std::string("llama.") + key});
  }
  for (const char* key : {"attention.layer_norm_rms_epsilon", "rope.freq_base"}) {
    expect_refusal(Changed().with(key, "1e-5").refusal(), {std::string("llama.") + key});
  }
  expect_refusal(Changed().with("rope.scaling.type", 1U).refusal(), {"llama.rope.scaling.type"});
  expect_refusal(
      Changed()
          .with("block_count", formats::MetaType::kI32, formats::Bytes().number(std::int32_t{-3}))
          .refusal(),
      {"llama.block_count"});
}

TEST(Config, MissingKeysAreNamed) {
  for (const char* key :
       {"block_count", "embedding_length", "feed_forward_length", "attention.head_count",
        "context_length", "attention.layer_norm_rms_epsilon"}) {
    expect_refusal(Changed().without(key).refusal(), {std::string("llama.") + key, "missing"});
  }
  expect_refusal(Changed("gemma3").without("attention.sliding_window").refusal(),
                 {"gemma3.attention.sliding_window", "missing"});
}

TEST(Config, UnknownArchitecturesAreRefusedWithTheKnownOnes) {
  formats::GgufBuilder b;
  b.key_string("general.architecture", "mamba");
  const std::string message = refusal(b.build());
  EXPECT_TRUE(formats::has(message, "mamba"));
  EXPECT_TRUE(formats::has(message, "llama, qwen2, gemma3, cicada-v1"));
}

TEST(Load, MissingTensorsAreNamed) {
  const TestModel m{.without = {"blk.1.ffn_up.weight", "blk.2.attn_norm.weight"}};
  const std::string message = refusal(test_file(m));
  EXPECT_TRUE(formats::has(message, "2 tensors"));
  EXPECT_TRUE(formats::has(message, "blk.1.ffn_up.weight"));
}

// A model computed without them would be another one.
TEST(Load, TensorsOfAnotherModelAreRefusedByName) {
  for (const char* name :
       {"blk.0.attn_q.bias", "blk.0.ffn_down.bias", "output.bias", "blk.1.attn_q_norm.weight",
        "blk.3.attn_norm.weight", "blk.0.rel_pos_proj.weight", "token_embd_norm.weight"}) {
    const std::string message = refusal(test_file({.more = {name}}));
    expect_refusal(message,
                   {std::string("tensor ") + name + " is not part of architecture llama", "open_"});
    EXPECT_FALSE(formats::has(message, "more")) << message;
  }
  expect_refusal(refusal(test_file({.more = {"output.bias", "blk.0.attn_q.bias"}})),
                 {"tensor blk.0.attn_q.bias", "(nor is 1 more)"});
  expect_refusal(refusal(test_file({.more = {"a\x1b[31m\nb"}})), {"tensor a\\x1b[31m\\x0ab is"});
  // What is missing says more about a file than what is there instead.
  expect_refusal(refusal(test_file({.without = {"blk.0.attn_q.weight"}, .more = {"output.bias"}})),
                 {"blk.0.attn_q.weight", "is missing"});
}

TEST(Load, FrequenciesThatFollowFromTheConfigurationAreIgnored) {
  EXPECT_EQ(refusal(test_file({.more = {"blk.0.attn_rot_embd", "blk.1.attn_rot_embd.weight",
                                        "model.layers.0.self_attn.rotary_emb.inv_freq"}})),
            "");
}

TEST(Load, AMisshapenTensorIsNamedWithBothShapes) {
  TestModel m{.without = {"blk.0.attn_k.weight"}};
  formats::GgufBuilder b = test_metadata(m);
  add_test_matrix(b, m, "token_embd.weight", kTestVocab, m.hidden);
  for (std::uint32_t layer = 0; layer < m.num_layers; ++layer) add_test_layer(b, m, layer);
  m.without.clear();
  add_test_matrix(b, m, "blk.0.attn_k.weight", 48, m.hidden);
  add_test_vector(b, m, "output_norm.weight", m.hidden, 1.0F);
  EXPECT_TRUE(
      formats::has(refusal(b.build()), "blk.0.attn_k.weight: is [48, 64], [32, 64] is needed"));
}

TEST(Load, ANamedPositionLayerWithoutItsTensorIsACorruptFile) {
  const TestModel m{
      .architecture = "cicada-v1", .without = {"blk.1.rel_pos_proj.weight"}, .rel_pos_dim = 16};
  EXPECT_TRUE(formats::has(refusal(test_file(m)), "blk.1.rel_pos_proj.weight"));
}

TEST(RelPosBucket, FollowsTheDefinition) {
  // R = 16, half 8, max 64: linear below 8, then 8 + floor(8 ln(d/8) / ln(8)).
  for (std::uint32_t d = 0; d < 8; ++d) EXPECT_EQ(rel_pos_bucket(d, 16, 64), d);
  EXPECT_EQ(rel_pos_bucket(8, 16, 64), 8U);
  EXPECT_EQ(rel_pos_bucket(11, 16, 64), 9U);   // 8 ln(1.375) / ln 8 = 1.22
  EXPECT_EQ(rel_pos_bucket(30, 16, 64), 13U);  // 8 ln(3.75) / ln 8 = 5.08
  EXPECT_EQ(rel_pos_bucket(63, 16, 64), 15U);
  EXPECT_EQ(rel_pos_bucket(64, 16, 64), 15U);
  EXPECT_EQ(rel_pos_bucket(1U << 24, 16, 64), 15U);
  for (std::uint32_t d = 0; d < 2000; ++d) {
    EXPECT_LE(rel_pos_bucket(d, 16, 64), rel_pos_bucket(d + 1, 16, 64));
  }
}

TEST(HalfSplitOrder, PairsOfTheFileBecomeHalves) {
  EXPECT_EQ(half_split_order(8, 8, 8), (std::vector<std::uint32_t>{0, 2, 4, 6, 1, 3, 5, 7}));
  // The second head likewise; rows behind the turned ones stay.
  EXPECT_EQ(half_split_order(12, 6, 4),
            (std::vector<std::uint32_t>{0, 2, 1, 3, 4, 5, 6, 8, 7, 9, 10, 11}));
}

TEST(Plan, ZeroPartsAreNotInItAndAreNamed) {
  platform::ThreadPool pool(1);
  const TestModel m{.zero = {"blk.0.attn_output.weight", "blk.1.ffn_down.weight",
                             "blk.2.attn_output.weight", "blk.2.ffn_down.weight"},
                    .num_layers = 4};
  const auto model = load_test_model(test_file(m), pool, kLevel);
  EXPECT_EQ(model->plan().elided, (std::vector<std::string>{"blk.0.attn", "blk.1.ffn", "blk.2"}));
  for (const Step& step : model->plan().steps) {
    EXPECT_FALSE(step.name.starts_with("blk.0.attn")) << step.name;
    EXPECT_FALSE(step.name.starts_with("blk.1.ffn")) << step.name;
    EXPECT_FALSE(step.name.starts_with("blk.2.")) << step.name;
  }
  const auto whole = load_test_model(test_file(m), pool, kLevel, false);
  EXPECT_TRUE(whole->plan().elided.empty());
  EXPECT_GT(whole->plan().steps.size(), model->plan().steps.size());
  EXPECT_GT(whole->weights().packed_bytes(), model->weights().packed_bytes());
}

// Logits of `wanted` rows of forty of one sequence, in one batch.
std::vector<float> logits_of(const Model& model, platform::ThreadPool& pool,
                             const std::set<std::size_t>& wanted) {
  constexpr std::size_t kRows = 40;
  auto executor = Executor::create(model, pool, {.max_rows = kRows, .max_context = kRows});
  auto pages = kv::PagePool::create(model.kv_layout(), 1);
  kv::Sequence sequence(*pages);
  EXPECT_TRUE(sequence.reserve(kRows).has_value());
  std::vector<Row> rows;
  for (std::size_t i = 0; i < kRows; ++i) {
    rows.push_back({.token = TokenId(static_cast<std::int32_t>(i * 13 % kTestVocab)),
                    .position = static_cast<std::int64_t>(i),
                    .wants_logits = wanted.contains(i)});
  }
  std::vector<float> logits(wanted.size() * kTestVocab);
  kv::Sequence* const sequences[] = {&sequence};
  EXPECT_TRUE((*executor)->run(rows, sequences, logits).has_value());
  return logits;
}

TEST(Plan, RowsThatNobodyAsksForEndWithTheLastKeysAndChangeNoBit) {
  platform::ThreadPool pool(2);
  const std::set<std::string> zeros[] = {
      {},
      {"blk.2.attn_output.weight"},
      {"blk.2.ffn_down.weight"},
      {"blk.2.attn_output.weight", "blk.2.ffn_down.weight"},
  };
  const char* const followed_by[] = {"blk.2.attention", "blk.2.ffn_norm", "blk.2.attention",
                                     "blk.1.attention"};
  for (std::size_t i = 0; i < std::size(zeros); ++i) {
    const auto model = load_test_model(test_file({.zero = zeros[i]}), pool, kLevel);
    const std::vector<Step>& steps = model->plan().steps;
    const auto keep = std::ranges::find(steps, StepKind::kKeepWanted, &Step::kind);
    ASSERT_LT(keep + 1, steps.end());
    EXPECT_EQ((keep + 1)->name, followed_by[i]);
    EXPECT_TRUE(std::all_of(keep + 1, steps.end(), [](const Step& s) { return s.wanted_rows; }));

    std::set<std::size_t> all;
    for (std::size_t row = 0; row < 40; ++row) all.insert(row);
    const std::vector<float> expected = logits_of(*model, pool, all);
    const std::set<std::size_t> wanted = {3, 4, 31, 39};
    const std::vector<float> got = logits_of(*model, pool, wanted);
    std::size_t at = 0;
    for (const std::size_t row : wanted) {
      EXPECT_EQ(std::memcmp(&got[at], &expected[row * kTestVocab], kTestVocab * sizeof(float)), 0)
          << "row " << row;
      at += kTestVocab;
    }
  }
}

// The sites whose rounding costs most read the finer form (docs/numerics.md, "What is rounded").
TEST(Plan, ProductsReadTheFormOfTheirSite) {
  using kernels::InputFormat;
  platform::ThreadPool pool(1);
  const auto blocks = load_test_model(test_file({}), pool, kLevel);
  const auto floats = load_test_model(test_file({.dtype = tensor::DType::kF16}), pool, kLevel);
  std::size_t products = 0;
  for (const Step& step : blocks->plan().steps) {
    const bool is_coarse = step.name.ends_with(".attn_output") || step.name.ends_with(".ffn_glu");
    for (const Product& product : step.products) {
      ++products;
      EXPECT_EQ(product.input, is_coarse ? InputFormat::kInt8 : InputFormat::kInt15)
          << product.tensor;
    }
  }
  EXPECT_EQ(products, 3U * 7U + 1U);
  for (const Step& step : floats->plan().steps) {
    for (const Product& product : step.products) EXPECT_EQ(product.input, InputFormat::kF32);
  }
}

TEST(Plan, APositionLayerIsNamedByWhatTheFileHolds) {
  platform::ThreadPool pool(1);
  const TestModel none{.architecture = "cicada-v1"};
  EXPECT_EQ(load_test_model(test_file(none), pool, kLevel)->plan().notices,
            (std::vector<std::string>{
                "Skipping position encoding layer initialization: not found in model config",
                "[INFO] Initializing rotary embedding with max_position=2048"}));
  TestModel zero{.architecture = "cicada-v1", .rel_pos_dim = 16};
  zero.zero = {"blk.0.rel_pos_proj.weight", "blk.1.rel_pos_proj.weight",
               "blk.2.rel_pos_proj.weight"};
  const auto elided = load_test_model(test_file(zero), pool, kLevel);
  EXPECT_EQ(elided->plan().notices,
            (std::vector<std::string>{"[INFO] Initializing rotary embedding with max_position=2048",
                                      "[INFO] PosEncoder layer skipped: weights all zero"}));
  EXPECT_EQ(elided->plan().elided, (std::vector<std::string>{"rel_pos_proj"}));
  zero.zero.erase("blk.1.rel_pos_proj.weight");
  EXPECT_EQ(load_test_model(test_file(zero), pool, kLevel)->plan().elided,
            (std::vector<std::string>{"blk.0.rel_pos_proj", "blk.2.rel_pos_proj"}));
}

TEST(NumericsId, NamesWhatBitsDependOn) {
  platform::ThreadPool pool(1);
  const std::string file = test_file({});
  const std::string id = load_test_model(file, pool, kLevel)->numerics_id();
  EXPECT_EQ(id.size(), 16U);
  EXPECT_EQ(id, load_test_model(file, pool, kLevel)->numerics_id());
  EXPECT_NE(
      id, load_test_model(test_file({.dtype = tensor::DType::kF32}), pool, kLevel)->numerics_id());
  const std::string zero = test_file({.zero = {"blk.1.ffn_down.weight"}});
  EXPECT_NE(load_test_model(zero, pool, kLevel)->numerics_id(),
            load_test_model(zero, pool, kLevel, false)->numerics_id());
  for (const platform::IsaLevel level : kernels::runnable_levels()) {
    if (level != kLevel) {
      EXPECT_NE(id, load_test_model(file, pool, level)->numerics_id());
    }
  }
}

TEST(Executor, BadBatchesAreErrors) {
  platform::ThreadPool pool(1);
  const auto model = load_test_model(test_file({}), pool, kLevel);
  auto executor = Executor::create(*model, pool, {.max_rows = 4, .max_context = 8});
  auto pages = kv::PagePool::create(model->kv_layout(), 1);
  kv::Sequence sequence(*pages);
  ASSERT_TRUE(sequence.reserve(8).has_value());
  kv::Sequence* const sequences[] = {&sequence};
  const auto code = [&](std::vector<Row> rows) {
    const auto result = (*executor)->run(rows, sequences, {});
    return result ? std::string() : result.error().message();
  };
  EXPECT_TRUE(formats::has(code({}), "batch of 0"));
  EXPECT_TRUE(formats::has(code(std::vector<Row>(5)), "batch of 5"));
  EXPECT_TRUE(formats::has(code({{.token = TokenId(-1)}}), "-1"));
  EXPECT_TRUE(formats::has(code({{.token = TokenId(kTestVocab)}}), "307"));
  EXPECT_TRUE(formats::has(code({{.token = TokenId(0), .position = 8}}), "position 8"));
}

}  // namespace
}  // namespace cicada::model
