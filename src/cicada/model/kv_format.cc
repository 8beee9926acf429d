#include "cicada/model/kv_format.h"

#include <fmt/format.h>

#include <algorithm>

#include "cicada/base/text.h"

namespace cicada::model {
namespace {

using kv::LayerFormat;

constexpr std::string_view kAllowed =
    "f16, q8, q6 or q4, as KEYS/VALUES where they differ, and LAYER:TYPE or FIRST-LAST:TYPE for "
    "layers of their own";

Error wrong_part(std::string_view part) {
  constexpr std::size_t kMostShown = 40;
  return Error(Code::kInvalidArgument, fmt::format("KV type '{}' is unknown; allowed are {}",
                                                   part.substr(0, kMostShown), kAllowed));
}

Result<LayerFormat> parse_types(std::string_view text) {
  const bool has_both = text.find('/') != std::string_view::npos;
  std::string_view rest = text;
  const auto keys = kernels::cache_type_named(take_until(rest, '/'));
  const auto values = has_both ? kernels::cache_type_named(rest) : keys;
  if (!keys || !values) return fail(wrong_part(text));
  return LayerFormat{.keys = *keys, .values = *values};
}

// A whole number below `limit`.
bool parse_layer(std::string_view text, std::uint32_t limit, std::uint32_t& out) {
  const auto number = whole_text_number<std::uint32_t>(text);
  out = number.value_or(0);
  return number && out < limit;
}

std::string types_name(const LayerFormat& format) {
  std::string keys(kernels::cache_type_name(format.keys));
  if (format.keys == format.values) return keys;
  return fmt::format("{}/{}", keys, kernels::cache_type_name(format.values));
}

}  // namespace

bool caches_keys_without_bias(const Config& config, const KvFormat& format, std::uint32_t layer) {
  return config.has_qkv_bias && !config.has_qk_norm && format.rotates_keys(layer);
}

Result<KvFormat> parse_kv_format(std::string_view text, std::uint32_t num_layers) {
  std::string_view rest = text;
  if (text.ends_with(',')) return fail(wrong_part(text));
  CICADA_ASSIGN(const LayerFormat all, parse_types(take_until(rest, ',')));
  KvFormat format;
  format.layers.assign(num_layers, all);
  while (!rest.empty()) {
    const std::string_view part = take_until(rest, ',');
    std::string_view types = part;
    std::string_view range = take_until(types, ':');
    const bool is_range = range.find('-') != std::string_view::npos;
    const std::string_view first_name = take_until(range, '-');
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    if (types.empty()) return fail(wrong_part(part));
    if (!parse_layer(first_name, num_layers, first) ||
        !parse_layer(is_range ? range : first_name, num_layers, last)) {
      return fail(Code::kInvalidArgument,
                  "layers '{}' of the KV type are not a range of the model's layers 0 to {}",
                  part.substr(0, part.find(':')), num_layers - 1);
    }
    if (last < first) {
      return fail(Code::kInvalidArgument,
                  "layers '{}' of the KV type run backwards; FIRST-LAST is allowed, FIRST at most "
                  "LAST",
                  part.substr(0, part.find(':')));
    }
    CICADA_ASSIGN(const LayerFormat own, parse_types(types));
    std::fill(format.layers.begin() + first, format.layers.begin() + last + 1, own);
  }
  return format;
}

std::string kv_format_name(const KvFormat& format) {
  if (format.layers.empty()) return types_name({});
  const std::vector<LayerFormat>& layers = format.layers;
  // The commonest stands for all; the first one among equals.
  const auto most =
      std::max_element(layers.begin(), layers.end(), [&](const auto& a, const auto& b) {
        return std::count(layers.begin(), layers.end(), a) <
               std::count(layers.begin(), layers.end(), b);
      });
  std::string name = types_name(*most);
  for (std::size_t i = 0; i < layers.size();) {
    std::size_t end = i + 1;
    while (end < layers.size() && layers[end] == layers[i]) ++end;
    if (layers[i] != *most) {
      name += end - i == 1 ? fmt::format(",{}:", i) : fmt::format(",{}-{}:", i, end - 1);
      name += types_name(layers[i]);
    }
    i = end;
  }
  return name;
}

}  // namespace cicada::model
