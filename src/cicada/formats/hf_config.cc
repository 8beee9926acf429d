#include "cicada/formats/hf_config.h"

#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "cicada/formats/quote.h"
#include "cicada/json/parse.h"
#include "cicada/json/writer.h"

namespace cicada::formats {
namespace {

using json::Element;

struct CountKey {
  std::string_view hf;
  std::string_view gguf;  // behind "<architecture>."
};

constexpr std::array<CountKey, 6> kRequiredCounts = {{
    {"hidden_size", "embedding_length"},
    {"num_hidden_layers", "block_count"},
    {"num_attention_heads", "attention.head_count"},
    {"intermediate_size", "feed_forward_length"},
    {"max_position_embeddings", "context_length"},
    {"vocab_size", "vocab_size"},
}};

constexpr double kDefaultRopeBase = 10000.0;

std::string in_config(std::string_view key) { return fmt::format("config.json {}", key); }

// Reads members of one config.json into metadata under an architecture's prefix.
class ConfigReader {
 public:
  ConfigReader(Element root, std::string_view architecture)
      : root_(root), architecture_(architecture) {}

  Result<HfConfig> read() {
    config_.metadata.set("general.architecture", {MetaType::kString, architecture_});
    for (const CountKey& key : kRequiredCounts) {
      CICADA_ASSIGN(const std::uint64_t value, required_count(key.hf));
      set_count(key.gguf, value);
    }
    CICADA_TRY(read_heads());
    CICADA_TRY(read_norm_and_activation());
    CICADA_TRY(read_rope());
    CICADA_TRY(read_extras());
    return std::move(config_);
  }

 private:
  Result<std::optional<Element>> member(std::string_view key) {
    return json::find(root_, key, "config.json");
  }

  // A whole number that fits a GGUF u32; nothing when the key is missing or null.
  Result<std::optional<std::uint64_t>> count(std::string_view key, std::uint64_t min = 1) {
    CICADA_ASSIGN(const auto element, member(key));
    if (!element) return std::nullopt;
    CICADA_ASSIGN(const std::uint64_t value, json::as_u64(*element, in_config(key)));
    constexpr std::uint64_t kMax = std::numeric_limits<std::uint32_t>::max();
    if (value < min || value > kMax) {
      return fail(Code::kCorrupt, "{}: is {}, {} to {} are allowed", in_config(key), value, min,
                  kMax);
    }
    return value;
  }

  Result<std::uint64_t> required_count(std::string_view key) {
    CICADA_ASSIGN(const auto value, count(key));
    if (!value) return fail(Code::kCorrupt, "{}: is missing", in_config(key));
    return *value;
  }

  Result<std::optional<double>> positive(Element object, std::string_view key) {
    CICADA_ASSIGN(const auto element, json::find(object, key, "config.json"));
    if (!element) return std::nullopt;
    CICADA_ASSIGN(const double value, json::as_f64(*element, in_config(key)));
    const auto stored = static_cast<float>(value);  // neither 0 nor infinite as GGUF stores it
    if (!(stored > 0.0F) || !std::isfinite(stored)) {
      return fail(Code::kCorrupt, "{}: is {}, a positive number is needed", in_config(key), value);
    }
    return value;
  }

  std::string prefixed(std::string_view key) const {
    return fmt::format("{}.{}", architecture_, key);
  }
  void set_count(std::string_view key, std::uint64_t value) {
    config_.metadata.set(prefixed(key), {MetaType::kU32, value});
  }
  // As GGUF stores it: rounded to float32.
  void set_float(std::string_view key, double value) {
    config_.metadata.set(prefixed(key),
                         {MetaType::kF32, static_cast<double>(static_cast<float>(value))});
  }

  Result<void> read_heads() {
    CICADA_ASSIGN(const std::uint64_t hidden, required_count("hidden_size"));
    CICADA_ASSIGN(const std::uint64_t heads, required_count("num_attention_heads"));
    CICADA_ASSIGN(const auto kv_heads, count("num_key_value_heads"));
    set_count("attention.head_count_kv", kv_heads.value_or(heads));
    CICADA_ASSIGN(const auto head_dim, count("head_dim"));
    if (!head_dim && hidden % heads != 0) {
      return fail(Code::kCorrupt, "config.json: hidden_size {} is not a multiple of {} heads",
                  hidden, heads);
    }
    const std::uint64_t dim = head_dim.value_or(hidden / heads);
    set_count("rope.dimension_count", dim);
    set_count("attention.key_length", dim);
    set_count("attention.value_length", dim);
    return {};
  }

  Result<void> read_norm_and_activation() {
    CICADA_ASSIGN(const auto epsilon, positive(root_, "rms_norm_eps"));
    if (!epsilon) return fail(Code::kCorrupt, "config.json rms_norm_eps: is missing");
    set_float("attention.layer_norm_rms_epsilon", *epsilon);
    CICADA_ASSIGN(const auto activation, member("hidden_act"));
    if (!activation) return {};
    CICADA_ASSIGN(const auto name, json::as_string(*activation, in_config("hidden_act")));
    if (name != "silu" && name != "swish") {
      return fail(Code::kUnsupported,
                  "config.json hidden_act: {} is not supported; supported: silu", quote(name));
    }
    return {};
  }

  // RoPE stands in rope_theta and rope_scaling, or (newer files) together in rope_parameters.
  Result<void> read_rope() {
    CICADA_ASSIGN(const auto parameters, member("rope_parameters"));
    CICADA_ASSIGN(auto base, positive(root_, "rope_theta"));
    if (parameters && !base) {
      CICADA_ASSIGN(base, positive(*parameters, "rope_theta"));
    }
    set_float("rope.freq_base", base.value_or(kDefaultRopeBase));
    CICADA_ASSIGN(const auto partial, positive(root_, "partial_rotary_factor"));
    if (partial && *partial != 1.0) {
      return fail(Code::kUnsupported, "config.json partial_rotary_factor: {}, only 1 is supported",
                  *partial);
    }
    CICADA_ASSIGN(const auto scaling, member("rope_scaling"));
    if (scaling) return read_scaling(*scaling);
    return parameters ? read_scaling(*parameters) : Result<void>();
  }

  Result<void> read_scaling(Element scaling) {
    CICADA_ASSIGN(auto type, json::find(scaling, "rope_type", in_config("rope_scaling")));
    if (!type) {
      CICADA_ASSIGN(type, json::find(scaling, "type", in_config("rope_scaling")));
    }
    if (!type) return {};
    CICADA_ASSIGN(const auto name, json::as_string(*type, in_config("rope_scaling")));
    if (name == "default") return {};
    if (name != "linear") {
      return fail(Code::kUnsupported,
                  "config.json rope_scaling: {} is not supported; supported: default linear",
                  quote(name));
    }
    CICADA_ASSIGN(const auto factor, positive(scaling, "factor"));
    if (!factor) return fail(Code::kCorrupt, "config.json rope_scaling: factor is missing");
    config_.metadata.set(prefixed("rope.scaling.type"),
                         {MetaType::kString, std::string_view("linear")});
    set_float("rope.scaling.factor", *factor);
    return {};
  }

  Result<void> read_extras() {
    CICADA_ASSIGN(const auto window, count("sliding_window", 0));
    if (window && *window > 0) set_count("attention.sliding_window", *window);
    if (architecture_ == "cicada-v1") {
      CICADA_ASSIGN(const auto dim, count("rel_pos_dim", 0));
      if (dim) set_count("rel_pos_dim", *dim);
      CICADA_ASSIGN(const auto distance, count("rel_pos_max_distance"));
      if (distance) set_count("rel_pos_max_distance", *distance);
    }
    CICADA_ASSIGN(const auto tied, member("tie_word_embeddings"));
    if (!tied) return {};
    CICADA_ASSIGN(config_.ties_output_to_embedding,
                  json::as_bool(*tied, in_config("tie_word_embeddings")));
    return {};
  }

  Element root_;
  std::string_view architecture_;  // static
  HfConfig config_;
};

Result<std::string_view> architecture_of(Element root) {
  CICADA_ASSIGN(const auto type, json::find(root, "model_type", "config.json"));
  if (!type) return fail(Code::kCorrupt, "config.json model_type: is missing");
  CICADA_ASSIGN(const auto name, json::as_string(*type, in_config("model_type")));
  if (name == "llama" || name == "mistral") return std::string_view("llama");
  if (name == "cicada-v1" || name == "cicada_v1") return std::string_view("cicada-v1");
  return fail(Code::kUnsupported,
              "config.json model_type: {} is not supported; supported: llama mistral cicada-v1",
              quote(name));
}

}  // namespace

Result<HfConfig> read_hf_config(std::string_view text) {
  auto document = json::parse(text);
  if (!document) return fail(std::move(document).error().with_context("config.json"));
  CICADA_ASSIGN(const std::string_view architecture, architecture_of(document->root()));
  return ConfigReader(document->root(), architecture).read();
}

}  // namespace cicada::formats
