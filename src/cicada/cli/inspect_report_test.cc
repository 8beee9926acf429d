#include "cicada/cli/inspect_report.h"

#include <gtest/gtest.h>

#include <set>

#include "cicada/formats/gguf_test_builder.h"

namespace cicada::cli {
namespace {

using formats::GgufBuilder;
using Names = std::vector<std::string>;

// What to change of a llama of two layers, width 32, feed-forward 64, 3 tokens.
struct Changes {
  std::set<std::string> zero = {};
  std::set<std::string> without = {};
  std::string architecture = "llama";
  std::uint32_t rel_pos_dim = 0;
};

GgufBuilder small_model(const Changes& changes = {}) {
  const std::string prefix = changes.architecture + ".";
  GgufBuilder builder;
  builder.key_string("general.architecture", changes.architecture)
      .key_u32(prefix + "block_count", 2)
      .key_u32(prefix + "context_length", 64)
      .key_u32(prefix + "embedding_length", 32)
      .key_u32(prefix + "feed_forward_length", 64)
      .key_u32(prefix + "attention.head_count", 4)
      .key_f32(prefix + "attention.layer_norm_rms_epsilon", 1e-5F)
      .key_u32(prefix + "rel_pos_dim", changes.rel_pos_dim);
  const auto add = [&](const std::string& name, const std::vector<std::uint64_t>& dims) {
    if (changes.without.contains(name)) return;
    std::uint64_t count = 1;
    for (const std::uint64_t dim : dims) count *= dim;
    builder.tensor_f32(name, dims,
                       std::vector<float>(count, changes.zero.contains(name) ? 0.0F : 1.0F));
  };
  add("token_embd.weight", {32, 3});
  for (const std::string layer : {"blk.0.", "blk.1."}) {
    add(layer + "attn_norm.weight", {32});
    for (const char* name : {"attn_q", "attn_k", "attn_v", "attn_output"}) {
      add(layer + name + ".weight", {32, 32});
    }
    if (changes.rel_pos_dim > 0) add(layer + "rel_pos_proj.weight", {changes.rel_pos_dim, 4});
    add(layer + "ffn_norm.weight", {32});
    add(layer + "ffn_gate.weight", {32, 64});
    add(layer + "ffn_up.weight", {32, 64});
    add(layer + "ffn_down.weight", {64, 32});
  }
  add("output_norm.weight", {32});
  return builder;
}

InspectReport report_on(const GgufBuilder& builder) {
  const auto file = formats::open_bytes(builder.build());
  EXPECT_TRUE(file) << file.error().to_string();
  return inspect_file(*file);
}

const PartCount& part(const PartCounts& parts, model::Part part) {
  return parts[static_cast<std::size_t>(part)];
}

TEST(InspectReport, CountsParametersByPart) {
  const InspectReport report = report_on(small_model());
  EXPECT_TRUE(report.is_runnable());
  EXPECT_EQ(part(report.parts, model::Part::kEmbedding).found, 96U);
  EXPECT_EQ(part(report.parts, model::Part::kAttention).found, 2U * 4 * 1024);
  EXPECT_EQ(part(report.parts, model::Part::kFeedForward).expected, 2U * 3 * 2048);
  EXPECT_EQ(part(report.parts, model::Part::kNorms).bytes, 4U * 5 * 32);
  EXPECT_EQ(part(report.parts, model::Part::kHead).expected, 0U) << "the head is tied";
  EXPECT_EQ(report.layers[1].total().found, 4U * 1024 + 3 * 2048 + 64);
  EXPECT_EQ(report.parameters, 96U + 2 * (4 * 1024 + 3 * 2048 + 64) + 32);
}

TEST(InspectReport, AMissingTensorIsExpectedButNotFound) {
  const InspectReport report = report_on(small_model({.without = {"blk.1.ffn_up.weight"}}));
  EXPECT_FALSE(report.is_runnable());
  EXPECT_EQ(report.audit.missing, (Names{"blk.1.ffn_up.weight"}));
  EXPECT_TRUE(formats::has(report.refusal, "blk.1.ffn_up.weight"));
  const PartCount& count = part(report.layers[1].parts, model::Part::kFeedForward);
  EXPECT_EQ(count.expected - count.found, 2048U);
}

TEST(InspectReport, TensorsTheConfigurationDoesNotCallForAreExtra) {
  GgufBuilder builder = small_model();
  builder.tensor_f32("blk.2.attn_q.weight", {32, 32}, std::vector<float>(1024));
  const InspectReport report = report_on(builder);
  EXPECT_EQ(report.audit.extra, (Names{"blk.2.attn_q.weight"}));
  EXPECT_FALSE(report.is_runnable());
  EXPECT_TRUE(formats::has(report.refusal,
                           "blk.2.attn_q.weight is not part of architecture llama as configured"));
}

TEST(InspectReport, TensorsThatNothingReadsAreUnused) {
  GgufBuilder builder = small_model();
  builder.tensor_f32("blk.0.attn_rot_embd.weight", {4}, std::vector<float>(4));
  const InspectReport report = report_on(builder);
  EXPECT_EQ(report.audit.unused, (Names{"blk.0.attn_rot_embd.weight"}));
  EXPECT_TRUE(report.audit.extra.empty());
  EXPECT_TRUE(report.is_runnable()) << report.refusal;
}

TEST(InspectReport, ZeroPartsAreNamedByLayer) {
  const InspectReport report =
      report_on(small_model({.zero = {"blk.0.attn_output.weight", "blk.0.ffn_down.weight",
                                      "blk.1.ffn_down.weight", "blk.1.attn_q.weight"}}));
  EXPECT_EQ(report.zeroed_layers, (Names{"blk.0", "blk.1.ffn"}));
  EXPECT_TRUE(report.layers[0].is_attention_zero);
  EXPECT_FALSE(report.layers[1].is_attention_zero);
}

TEST(InspectReport, ZeroPositionTablesAreNamedTogetherWhenAllAre) {
  Changes changes{
      .zero = {"blk.1.rel_pos_proj.weight"}, .architecture = "cicada-v1", .rel_pos_dim = 8};
  EXPECT_EQ(report_on(small_model(changes)).zeroed_layers, (Names{"blk.1.rel_pos_proj"}));
  changes.zero.insert("blk.0.rel_pos_proj.weight");
  EXPECT_EQ(report_on(small_model(changes)).zeroed_layers, (Names{"rel_pos_proj"}));
}

TEST(InspectReport, AnUnknownArchitectureStillHasItsTensorsCounted) {
  const InspectReport report = report_on(small_model({.architecture = "unheard-of"}));
  EXPECT_FALSE(report.is_runnable());
  EXPECT_EQ(report.architecture, "unheard-of");
  EXPECT_TRUE(formats::has(report.refusal, "unheard-of"));
  EXPECT_GT(report.parameters, 0U);
  EXPECT_TRUE(report.audit.missing.empty());
  EXPECT_TRUE(report.layers.empty());
}

TEST(InspectReport, AFileWithoutEmbeddingNamesItAsMissing) {
  const InspectReport report = report_on(small_model({.without = {"token_embd.weight"}}));
  EXPECT_FALSE(report.is_runnable());
  EXPECT_EQ(report.audit.missing, (Names{"token_embd.weight"}));
}

}  // namespace
}  // namespace cicada::cli
