#include "cicada/formats/hf_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace cicada::formats {
namespace {

struct NamePair {
  std::string_view gguf;
  std::string_view hf;
};

// Without the ending ".weight" or ".bias".
constexpr std::array<NamePair, 3> kModelNames = {{
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
}};

// Behind "blk.N." and "model.layers.N.".
constexpr std::array<NamePair, 10> kLayerNames = {{
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
    {"rel_pos_proj", "pos_encoder"},  // cicada-v1; written behind "layers.N.", read behind both
}};

// Cuts `prefix` off the front.
bool consume(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Cuts a decimal number and a dot off the front; nothing unless it is written without leading zeros
// and has at most 5 digits.
std::optional<std::string_view> consume_layer(std::string_view& text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos || dot == 0 || dot > 5) return std::nullopt;
  const std::string_view digits = text.substr(0, dot);
  const bool all_digits =
      std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!all_digits || (dot > 1 && digits[0] == '0')) return std::nullopt;
  text.remove_prefix(dot + 1);
  return digits;
}

// Cuts ".weight" or ".bias" off the end and returns it.
std::optional<std::string_view> consume_ending(std::string_view& text) {
  for (const std::string_view ending : {".weight", ".bias"}) {
    if (!text.ends_with(ending)) continue;
    text.remove_suffix(ending.size());
    return ending;
  }
  return std::nullopt;
}

template <std::size_t N>
std::optional<std::string_view> translate(const std::array<NamePair, N>& table,
                                          std::string_view NamePair::*from,
                                          std::string_view NamePair::*to, std::string_view name) {
  for (const NamePair& pair : table) {
    if (pair.*from == name) return pair.*to;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> hf_to_gguf_name(std::string_view name) {
  const auto ending = consume_ending(name);
  if (!ending) return std::nullopt;
  if (const auto found = translate(kModelNames, &NamePair::hf, &NamePair::gguf, name)) {
    return fmt::format("{}{}", *found, *ending);
  }
  consume(name, "model.");
  if (!consume(name, "layers.")) return std::nullopt;
  const auto layer = consume_layer(name);
  if (!layer) return std::nullopt;
  const auto found = translate(kLayerNames, &NamePair::hf, &NamePair::gguf, name);
  if (!found) return std::nullopt;
  return fmt::format("blk.{}.{}{}", *layer, *found, *ending);
}

std::optional<std::string> gguf_to_hf_name(std::string_view name) {
  const auto ending = consume_ending(name);
  if (!ending) return std::nullopt;
  if (const auto found = translate(kModelNames, &NamePair::gguf, &NamePair::hf, name)) {
    return fmt::format("{}{}", *found, *ending);
  }
  if (!consume(name, "blk.")) return std::nullopt;
  const auto layer = consume_layer(name);
  if (!layer) return std::nullopt;
  const auto found = translate(kLayerNames, &NamePair::gguf, &NamePair::hf, name);
  if (!found) return std::nullopt;
  const std::string_view front = name == "rel_pos_proj" ? "layers" : "model.layers";
  return fmt::format("{}.{}.{}{}", front, *layer, *found, *ending);
}

}  // namespace cicada::formats
