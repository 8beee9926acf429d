#include "cicada/model/config_reader.h"

#include <cmath>

#include "cicada/formats/quote.h"
#include "cicada/kernels/attention/attention.h"

namespace cicada::model {
namespace {

// Far above any known model; small enough that products of three of them fit in 64 bits.
constexpr std::uint32_t kMaxWidth = 1U << 20;
constexpr std::uint32_t kMaxHeads = 1U << 12;
constexpr std::uint32_t kMaxHeadDim = kernels::kMostHeadDim;
constexpr std::uint32_t kMaxLayers = 1U << 10;
constexpr std::uint32_t kMaxVocab = 1U << 22;
constexpr std::uint32_t kMaxContext = 1U << 24;
constexpr double kMinRopeFactor = 1e-3;
constexpr double kMaxRopeFactor = 1e6;

}  // namespace

std::string ConfigReader::full_key(std::string_view key) const {
  return architecture_ + "." + std::string(key);
}

bool ConfigReader::has(std::string_view key) const {
  return file_->metadata().find(full_key(key)) != nullptr;
}

template <class Number>
Number ConfigReader::checked(const std::string& key, Result<std::optional<Number>> value,
                             Number low, Number high, std::optional<Number> fallback) {
  if (!value) {
    refuse(std::move(value).error());
    return low;
  }
  const std::optional<Number>& found = *value;
  if (!found) {
    if (!fallback) refuse(Error(Code::kCorrupt, fmt::format("key {} is missing", key)));
    return fallback.value_or(low);
  }
  if (!(*found >= low && *found <= high)) {
    refuse(Error(Code::kCorrupt,
                 fmt::format("key {}: is {}, {} to {} is allowed", key, *found, low, high)));
    return low;
  }
  return *found;
}

std::uint32_t ConfigReader::count(std::string_view key, std::uint32_t low, std::uint32_t high,
                                  std::optional<std::uint32_t> fallback) {
  const std::string full = full_key(key);
  return static_cast<std::uint32_t>(
      checked<std::uint64_t>(full, file_->metadata().get_u64(full), low, high, fallback));
}

double ConfigReader::number(std::string_view key, double low, double high,
                            std::optional<double> fallback) {
  const std::string full = full_key(key);
  return checked<double>(full, file_->metadata().get_f64(full), low, high, fallback);
}

std::string ConfigReader::text(std::string_view key, std::string_view fallback) {
  auto value = file_->metadata().get_string(full_key(key));
  if (!value) {
    refuse(std::move(value).error());
    return std::string(fallback);
  }
  return std::string(value->value_or(fallback));
}

Config ConfigReader::common() {
  Config c;
  c.architecture = architecture_;
  c.num_layers = count("block_count", 1, kMaxLayers);
  c.hidden = count("embedding_length", 1, kMaxWidth);
  c.ffn = count("feed_forward_length", 1, kMaxWidth);
  c.num_heads = count("attention.head_count", 1, kMaxHeads);
  c.num_kv_heads = count("attention.head_count_kv", 1, kMaxHeads, c.num_heads);
  if (c.num_heads % c.num_kv_heads != 0) {
    refuse(Error(Code::kCorrupt, fmt::format("{} heads are not a multiple of {} KV heads",
                                             c.num_heads, c.num_kv_heads)));
  }
  const std::uint32_t even_split = c.hidden / c.num_heads;
  const bool divides = c.hidden % c.num_heads == 0 && even_split > 0;
  const auto fallback_dim = divides ? std::optional(even_split) : std::nullopt;
  c.head_dim = count("attention.key_length", 2, kMaxHeadDim, fallback_dim);
  c.value_dim = count("attention.value_length", 1, kMaxHeadDim, fallback_dim);
  c.rope_dim = count("rope.dimension_count", 2, c.head_dim, c.head_dim);
  if (c.rope_dim % 2 != 0) {
    refuse(Error(Code::kCorrupt, fmt::format("RoPE dimension {} is odd", c.rope_dim)));
  }
  c.trained_context = count("context_length", 1, kMaxContext);
  c.norm_epsilon = static_cast<float>(number("attention.layer_norm_rms_epsilon", 1e-12, 1.0));
  c.query_scale = 1.0F / std::sqrt(static_cast<float>(c.head_dim));
  LayerConfig layer;
  layer.rope_base = number("rope.freq_base", 1.0, 1e15, 10000.0);
  layer.rope_factor = rope_factor();
  c.layers.assign(c.num_layers, layer);
  check_tensors_against(c);
  return c;
}

// As llama.cpp reads these keys. A factor without a type is linear, and files from before the keys
// were renamed have rope.scale_linear.
double ConfigReader::rope_factor() {
  // Scales q and k as YaRN does, but in any type of scaling.
  constexpr std::string_view kAttentionKey = "rope.scaling.attn_factor";
  if (const double factor = number(kAttentionKey, 0.0, 1e6, 1.0); factor != 1.0) {
    refuse(Error(Code::kUnsupported, fmt::format("key {}: is {}, which is not built; 1 is",
                                                 full_key(kAttentionKey), factor)));
  }
  const std::string type = text("rope.scaling.type", "linear");
  if (type == "none") return 1.0;
  if (type != "linear") {
    refuse(Error(
        Code::kUnsupported,
        fmt::format("RoPE scaling '{}' is not built; none and linear are", formats::quote(type))));
  }
  const std::string_view key =
      has("rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear";
  const double factor = number(key, 0.0, kMaxRopeFactor, 0.0);
  if (factor == 0.0) return 1.0;
  if (factor < kMinRopeFactor) {
    refuse(
        Error(Code::kCorrupt, fmt::format("key {}: is {}, 0 (none) or {} to {} is allowed",
                                          full_key(key), factor, kMinRopeFactor, kMaxRopeFactor)));
    return 1.0;
  }
  return factor;
}

void ConfigReader::check_tensors_against(Config& config) {
  const formats::TensorInfo* embedding = file_->find("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2) {
    refuse(Error(Code::kCorrupt, "tensor token_embd.weight: missing or not a matrix"));
    return;
  }
  if (embedding->shape[0] == 0 || embedding->shape[0] > kMaxVocab) {
    refuse(
        Error(Code::kCorrupt, fmt::format("tensor token_embd.weight: {} rows, 1 to {} is allowed",
                                          embedding->shape[0], kMaxVocab)));
    return;
  }
  config.vocab = static_cast<std::uint32_t>(embedding->shape[0]);
  config.is_tied = file_->find("output.weight") == nullptr;
}

}  // namespace cicada::model
