// The way from GGUF metadata to config.json.

#include <optional>

#include "cicada/formats/hf_config.h"
#include "cicada/formats/quote.h"
#include "cicada/json/writer.h"

namespace cicada::formats {
namespace {

class ConfigWriter {
 public:
  ConfigWriter(const Metadata& metadata, std::string_view architecture, const HfConfigFacts& facts)
      : metadata_(metadata), architecture_(architecture), facts_(facts) {}

  Result<std::string> write() {
    const bool is_llama = architecture_ == "llama";
    json_.begin_object();
    json_.key("architectures").begin_array();
    json_.string(is_llama ? "LlamaForCausalLM" : "CicadaForCausalLM").end_array();
    json_.field("model_type", architecture_).field("hidden_act", "silu");
    CICADA_TRY(write_counts());
    CICADA_TRY(write_rope());
    CICADA_TRY(write_float("rms_norm_eps", "attention.layer_norm_rms_epsilon"));
    CICADA_TRY(write_token_id("bos_token_id", "tokenizer.ggml.bos_token_id"));
    CICADA_TRY(write_token_id("eos_token_id", "tokenizer.ggml.eos_token_id"));
    json_.field("vocab_size", facts_.vocab_size);
    json_.field("tie_word_embeddings", facts_.ties_output_to_embedding);
    json_.field("attention_bias", facts_.has_attention_bias);
    json_.field("torch_dtype", facts_.dtype == tensor::DType::kF32   ? "float32"
                               : facts_.dtype == tensor::DType::kF16 ? "float16"
                                                                     : "bfloat16");
    json_.field(kWrittenByKey, kWrittenBy).field(kWeightsFileKey, facts_.weights_file);
    json_.end_object();
    return json_.take() + "\n";
  }

 private:
  std::string prefixed(std::string_view key) const {
    return fmt::format("{}.{}", architecture_, key);
  }

  Result<std::uint64_t> required(std::string_view key) {
    CICADA_ASSIGN(const auto value, metadata_.get_u64(prefixed(key)));
    if (!value) return fail(Code::kCorrupt, "key {}: is missing", prefixed(key));
    return *value;
  }

  Result<void> write_optional(std::string_view hf, std::string_view gguf) {
    CICADA_ASSIGN(const auto value, metadata_.get_u64(prefixed(gguf)));
    if (value) json_.field(hf, *value);
    return {};
  }

  Result<void> write_float(std::string_view hf, std::string_view gguf) {
    CICADA_ASSIGN(const auto value, metadata_.get_f64(prefixed(gguf)));
    if (!value) return fail(Code::kCorrupt, "key {}: is missing", prefixed(gguf));
    json_.field(hf, static_cast<float>(*value));
    return {};
  }

  Result<void> write_token_id(std::string_view hf, std::string_view gguf) {
    CICADA_ASSIGN(const auto value, metadata_.get_u64(gguf));
    if (value) json_.field(hf, *value);
    return {};
  }

  Result<void> write_counts() {
    CICADA_ASSIGN(const std::uint64_t hidden, required("embedding_length"));
    CICADA_ASSIGN(const std::uint64_t layers, required("block_count"));
    CICADA_ASSIGN(const std::uint64_t heads, required("attention.head_count"));
    CICADA_ASSIGN(const std::uint64_t feed_forward, required("feed_forward_length"));
    CICADA_ASSIGN(const std::uint64_t context, required("context_length"));
    CICADA_ASSIGN(const auto kv_heads, metadata_.get_u64(prefixed("attention.head_count_kv")));
    json_.field("hidden_size", hidden).field("num_hidden_layers", layers);
    json_.field("num_attention_heads", heads);
    json_.field("num_key_value_heads", kv_heads.value_or(heads));
    json_.field("intermediate_size", feed_forward).field("max_position_embeddings", context);
    CICADA_ASSIGN(const std::uint64_t head_dim, llama_head_dim(metadata_, architecture_));
    json_.field("head_dim", head_dim);
    CICADA_TRY(write_optional("sliding_window", "attention.sliding_window"));
    if (architecture_ == "llama") return {};
    CICADA_TRY(write_optional("rel_pos_dim", "rel_pos_dim"));
    return write_optional("rel_pos_max_distance", "rel_pos_max_distance");
  }

  Result<void> write_rope() {
    CICADA_ASSIGN(const auto base, metadata_.get_f64(prefixed("rope.freq_base")));
    json_.field("rope_theta", static_cast<float>(base.value_or(10000.0)));
    CICADA_ASSIGN(const auto type, metadata_.get_string(prefixed("rope.scaling.type")));
    if (type == "none") return {};
    if (type && *type != "linear") {
      return fail(Code::kUnsupported,
                  "key {}: {} cannot be written as config.json; supported: none linear",
                  prefixed("rope.scaling.type"), quote(*type));
    }
    // Without a type scaling is linear; the key has an older name; 0 means none (formats/gguf.md).
    CICADA_ASSIGN(auto factor, metadata_.get_f64(prefixed("rope.scaling.factor")));
    if (!factor) {
      CICADA_ASSIGN(factor, metadata_.get_f64(prefixed("rope.scale_linear")));
    }
    const double scale = factor.value_or(1.0);
    if (scale == 0.0 || scale == 1.0) return {};
    json_.key("rope_scaling").begin_object();
    json_.field("rope_type", "linear").field("factor", static_cast<float>(scale));
    json_.end_object();
    return {};
  }

  const Metadata& metadata_;
  std::string_view architecture_;
  HfConfigFacts facts_;
  json::Writer json_;
};

}  // namespace

Result<std::uint64_t> llama_head_dim(const Metadata& metadata, std::string_view architecture) {
  const auto key = [architecture](std::string_view name) {
    return fmt::format("{}.{}", architecture, name);
  };
  CICADA_ASSIGN(const auto key_length, metadata.get_u64(key("attention.key_length")));
  CICADA_ASSIGN(const auto hidden, metadata.get_u64(key("embedding_length")));
  CICADA_ASSIGN(const auto heads, metadata.get_u64(key("attention.head_count")));
  if (!hidden || !heads || *heads == 0) {
    return fail(Code::kCorrupt, "keys {} and {}: are missing or 0", key("embedding_length"),
                key("attention.head_count"));
  }
  const std::uint64_t dim = key_length.value_or(*hidden / *heads);
  CICADA_ASSIGN(const auto rope_dim, metadata.get_u64(key("rope.dimension_count")));
  if (dim == 0 || dim % 2 != 0 || rope_dim.value_or(dim) != dim) {
    return fail(
        Code::kUnsupported,
        "heads of {} dims with {} of them rotated; only wholly rotated even heads are known", dim,
        rope_dim.value_or(dim));
  }
  return dim;
}

Result<std::string_view> hf_architecture(const Metadata& metadata) {
  CICADA_ASSIGN(const auto architecture, metadata.get_string("general.architecture"));
  if (!architecture || (*architecture != "llama" && *architecture != "cicada-v1")) {
    return fail(Code::kUnsupported,
                "architecture {} cannot be written as safetensors; supported: llama cicada-v1",
                architecture ? quote(*architecture) : "(none)");
  }
  return *architecture;
}

Result<std::string> write_hf_config(const Metadata& metadata, const HfConfigFacts& facts) {
  CICADA_ASSIGN(const std::string_view architecture, hf_architecture(metadata));
  return ConfigWriter(metadata, architecture, facts).write();
}

}  // namespace cicada::formats
