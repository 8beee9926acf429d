#include <gtest/gtest.h>

#include <map>

#include "cicada/formats/hf_config.h"
#include "cicada/formats/hf_names.h"
#include "cicada/formats/rope_rows.h"
#include "cicada/formats/safetensors_test_builder.h"

namespace cicada::formats {
namespace {

TEST(HfNames, BothWaysForEveryName) {
  const std::map<std::string, std::string> names = {
      {"model.embed_tokens.weight", "token_embd.weight"},
      {"model.norm.weight", "output_norm.weight"},
      {"lm_head.weight", "output.weight"},
      {"model.layers.0.input_layernorm.weight", "blk.0.attn_norm.weight"},
      {"model.layers.10.self_attn.q_proj.weight", "blk.10.attn_q.weight"},
      {"model.layers.1.self_attn.k_proj.bias", "blk.1.attn_k.bias"},
      {"model.layers.1.self_attn.v_proj.weight", "blk.1.attn_v.weight"},
      {"model.layers.1.self_attn.o_proj.weight", "blk.1.attn_output.weight"},
      {"model.layers.1.post_attention_layernorm.weight", "blk.1.ffn_norm.weight"},
      {"model.layers.1.mlp.gate_proj.weight", "blk.1.ffn_gate.weight"},
      {"model.layers.1.mlp.up_proj.weight", "blk.1.ffn_up.weight"},
      {"model.layers.1.mlp.down_proj.weight", "blk.1.ffn_down.weight"},
      {"layers.31.pos_encoder.weight", "blk.31.rel_pos_proj.weight"},
  };
  for (const auto& [hf, gguf] : names) {
    EXPECT_EQ(hf_to_gguf_name(hf), gguf);
    EXPECT_EQ(gguf_to_hf_name(gguf), hf);
  }
  EXPECT_EQ(hf_to_gguf_name("model.layers.2.pos_encoder.weight"), "blk.2.rel_pos_proj.weight");
}

TEST(HfNames, UnknownNamesAreNothing) {
  for (const std::string_view name :
       {"", "weight", ".weight", "model.layers.weight", "model.layers..mlp.up_proj.weight",
        "model.layers.01.mlp.up_proj.weight", "model.layers.1x.mlp.up_proj.weight",
        "model.layers.123456.mlp.up_proj.weight", "model.layers.1.mlp.up_proj",
        "model.layers.1.mlp.experts.weight", "model.layers.-1.mlp.up_proj.weight"}) {
    EXPECT_EQ(hf_to_gguf_name(name), std::nullopt) << name;
  }
  EXPECT_EQ(gguf_to_hf_name("blk.0.attn_q_norm.weight"), std::nullopt);
  EXPECT_EQ(gguf_to_hf_name("rope_freqs.weight"), std::nullopt);
}

// The mapping of docs/formats/safetensors.md, for heads of 6: what stands at each place.
TEST(RopeRows, MappingIsTheDocumentedOne) {
  const std::vector<std::uint64_t> interleaved = {0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11};
  const std::vector<std::uint64_t> halves = {0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11};
  for (std::uint64_t row = 0; row < 12; ++row) {
    EXPECT_EQ(source_row(RowOrder::kToInterleaved, 6, row), interleaved[row]);
    EXPECT_EQ(source_row(RowOrder::kToHalves, 6, row), halves[row]);
    EXPECT_EQ(source_row(RowOrder::kKeep, 6, row), row);
  }
}

TEST(RopeRows, OneIsTheInverseOfTheOther) {
  for (const std::uint64_t head_dim : {2U, 4U, 64U, 96U, 128U}) {
    for (std::uint64_t row = 0; row < 3 * head_dim; ++row) {
      const std::uint64_t there = source_row(RowOrder::kToInterleaved, head_dim, row);
      EXPECT_EQ(source_row(RowOrder::kToHalves, head_dim, there), row);
    }
  }
}

TEST(RopeRows, OnlyQueriesAndKeys) {
  EXPECT_TRUE(has_rope_rows("blk.0.attn_q.weight"));
  EXPECT_TRUE(has_rope_rows("blk.12.attn_k.bias"));
  EXPECT_FALSE(has_rope_rows("blk.0.attn_v.weight"));
  EXPECT_FALSE(has_rope_rows("blk.0.attn_q_norm.weight"));
  EXPECT_FALSE(has_rope_rows("attn_q.weight"));
}

// kSmallConfig with one text replaced.
std::string changed(std::string_view from, std::string_view to) {
  std::string config(kSmallConfig);
  const std::size_t at = config.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return config.replace(at, from.size(), to);
}

std::string refusal_of(const std::string& config) {
  const auto read = read_hf_config(config);
  return read ? std::string() : read.error().to_string();
}

TEST(HfConfig, KeysAreTranslated) {
  const auto config = read_hf_config(kSmallConfig);
  ASSERT_TRUE(config) << config.error().to_string();
  const Metadata& metadata = config->metadata;
  EXPECT_TRUE(config->ties_output_to_embedding);
  EXPECT_EQ(metadata.get_string("general.architecture").value(), "llama");
  const std::map<std::string, std::uint64_t> counts = {
      {"embedding_length", 8},     {"block_count", 1},          {"attention.head_count", 2},
      {"feed_forward_length", 16}, {"context_length", 64},      {"attention.head_count_kv", 1},
      {"vocab_size", 4},           {"rope.dimension_count", 4}, {"attention.key_length", 4},
  };
  for (const auto& [key, value] : counts) {
    EXPECT_EQ(metadata.get_u64("llama." + key).value(), value) << key;
  }
  EXPECT_EQ(metadata.get_f64("llama.rope.freq_base").value(), 500000.0);
  EXPECT_EQ(metadata.get_f64("llama.attention.layer_norm_rms_epsilon").value(),
            static_cast<double>(1e-05F));
}

TEST(HfConfig, DefaultsAndVariants) {
  const auto heads = read_hf_config(changed("\"num_key_value_heads\": 1,", ""));
  EXPECT_EQ(heads->metadata.get_u64("llama.attention.head_count_kv").value(), 2U);
  const auto base = read_hf_config(changed("\"rope_theta\": 500000,", ""));
  EXPECT_EQ(base->metadata.get_f64("llama.rope.freq_base").value(), 10000.0);
  const auto newer = read_hf_config(changed(
      "\"rope_theta\": 500000", R"("rope_parameters": {"rope_theta": 7, "rope_type": "default"})"));
  EXPECT_EQ(newer->metadata.get_f64("llama.rope.freq_base").value(), 7.0);
  const auto dim = read_hf_config(changed("\"head_dim\": null", "\"head_dim\": 6"));
  EXPECT_EQ(dim->metadata.get_u64("llama.rope.dimension_count").value(), 6U);
  const auto linear = read_hf_config(
      changed("\"head_dim\": null", R"("rope_scaling": {"type": "linear", "factor": 4.0})"));
  EXPECT_EQ(linear->metadata.get_string("llama.rope.scaling.type").value(), "linear");
  EXPECT_EQ(linear->metadata.get_f64("llama.rope.scaling.factor").value(), 4.0);
  EXPECT_EQ(refusal_of(changed("\"llama\"", "\"mistral\"")), "");
}

TEST(HfConfig, CicadaV1) {
  const auto config = read_hf_config(
      changed("\"model_type\": \"llama\"",
              R"("model_type": "cicada_v1", "rel_pos_dim": 256, "rel_pos_max_distance": 1024)"));
  ASSERT_TRUE(config) << config.error().to_string();
  EXPECT_EQ(config->metadata.get_string("general.architecture").value(), "cicada-v1");
  EXPECT_EQ(config->metadata.get_u64("cicada-v1.rel_pos_dim").value(), 256U);
  EXPECT_EQ(config->metadata.get_u64("cicada-v1.rel_pos_max_distance").value(), 1024U);
  EXPECT_EQ(config->metadata.get_u64("cicada-v1.block_count").value(), 1U);
}

TEST(HfConfig, FaultsAreNamed) {
  EXPECT_TRUE(has(refusal_of("{"), "config.json: not valid JSON"));
  EXPECT_TRUE(has(refusal_of("[]"), "config.json: is an array, an object is needed"));
  EXPECT_TRUE(has(refusal_of("{}"), "config.json model_type: is missing"));
  EXPECT_TRUE(has(refusal_of(changed("\"llama\"", "\"bert\"")), "model_type: bert is not supp"));
  EXPECT_TRUE(has(refusal_of(changed("\"hidden_size\": 8,", "")), "hidden_size: is missing"));
  EXPECT_TRUE(has(refusal_of(changed("\"hidden_size\": 8", "\"hidden_size\": 0")),
                  "hidden_size: is 0, 1 to 4294967295"));
  EXPECT_TRUE(has(refusal_of(changed("\"hidden_size\": 8", "\"hidden_size\": -8")),
                  "hidden_size: is an integer, an unsigned integer is needed"));
  EXPECT_TRUE(has(refusal_of(changed("\"hidden_size\": 8", "\"hidden_size\": \"8\"")),
                  "hidden_size: is a string"));
  EXPECT_TRUE(has(refusal_of(changed("\"hidden_size\": 8", "\"hidden_size\": 9")),
                  "hidden_size 9 is not a multiple of 2 heads"));
  EXPECT_TRUE(has(refusal_of(changed("\"rms_norm_eps\": 1e-05,", "")), "rms_norm_eps: is missing"));
  EXPECT_TRUE(has(refusal_of(changed("1e-05", "-1")), "rms_norm_eps: is -1, a positive"));
  EXPECT_TRUE(has(refusal_of(changed("500000", "1e300")), "rope_theta: is 1e+300, a positive"));
  EXPECT_TRUE(has(refusal_of(changed("500000", "1e-60")), "rope_theta: is 1e-60, a positive"));
  EXPECT_TRUE(has(refusal_of(changed("\"silu\"", "\"gelu\"")), "hidden_act: gelu"));
  EXPECT_TRUE(has(refusal_of(changed("\"head_dim\": null", R"("rope_scaling": {"type": "yarn"})")),
                  "rope_scaling: yarn is not supported"));
  EXPECT_TRUE(has(refusal_of(changed("\"head_dim\": null", "\"partial_rotary_factor\": 0.5")),
                  "partial_rotary_factor: 0.5"));
}

// As the model reads GGUF (model/config_reader.cc): linear without a type, an older key, 0 for
// none.
TEST(HfConfig, EveryFormOfLinearScalingIsWritten) {
  const auto scaling_of = [](const std::vector<std::pair<std::string, MetaValue>>& keys) {
    Metadata metadata = read_hf_config(kSmallConfig)->metadata;
    for (const auto& [key, value] : keys) metadata.set("llama.rope." + key, value);
    HfConfigFacts facts;
    facts.vocab_size = 4;
    const auto after = read_hf_config(*write_hf_config(metadata, facts));
    return after->metadata.get_f64("llama.rope.scaling.factor").value();
  };
  const MetaValue four{MetaType::kF32, 4.0};
  const MetaValue none{MetaType::kString, std::string_view("none")};
  EXPECT_EQ(scaling_of({{"scaling.factor", four}}), 4.0);
  EXPECT_EQ(scaling_of({{"scale_linear", four}}), 4.0);
  EXPECT_EQ(scaling_of({{"scaling.factor", four}, {"scaling.type", none}}), std::nullopt);
  EXPECT_EQ(scaling_of({{"scaling.factor", {MetaType::kF32, 0.0}}}), std::nullopt);
  EXPECT_EQ(scaling_of({}), std::nullopt);
}

TEST(HfConfig, WhatIsWrittenReadsBackTheSame) {
  for (const std::string& text :
       {std::string(kSmallConfig),
        changed("\"model_type\": \"llama\"", R"("model_type": "cicada-v1", "rel_pos_dim": 4)"),
        changed("\"head_dim\": null", R"("rope_scaling": {"type": "linear", "factor": 2.5},
                "sliding_window": 32)")}) {
    const auto before = read_hf_config(text);
    ASSERT_TRUE(before) << before.error().to_string();
    HfConfigFacts facts;
    facts.vocab_size = 4;
    facts.ties_output_to_embedding = true;
    const auto written = write_hf_config(before->metadata, facts);
    ASSERT_TRUE(written) << written.error().to_string();
    const auto after = read_hf_config(*written);
    ASSERT_TRUE(after) << after.error().to_string() << *written;
    ASSERT_EQ(after->metadata.values().size(), before->metadata.values().size());
    for (const auto& [key, value] : before->metadata.values()) {
      const MetaValue* found = after->metadata.find(key);
      ASSERT_NE(found, nullptr) << key;
      EXPECT_EQ(found->type, value.type) << key;
      if (value.type == MetaType::kU32) {
        EXPECT_EQ(std::get<std::uint64_t>(found->value), std::get<std::uint64_t>(value.value));
      }
      if (value.type == MetaType::kF32) {
        EXPECT_EQ(std::get<double>(found->value), std::get<double>(value.value)) << key;
      }
    }
    EXPECT_TRUE(after->ties_output_to_embedding);
  }
}

}  // namespace
}  // namespace cicada::formats
