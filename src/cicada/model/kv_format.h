// How a model's keys and values are cached: in which width, layer by layer, and in what form.
//
// Packed keys and values are turned by a Hadamard rotation of each head, so that no element stands
// out; queries are turned with the keys, and outputs turned back. Packed keys of a model whose keys
// have a bias are cached without it, and what the bias adds to a score is added to the score
// (docs/kv.md).
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/base/result.h"
#include "cicada/kv/layout.h"
#include "cicada/model/config.h"

namespace cicada::model {

struct KvFormat {
  std::vector<kv::LayerFormat> layers;  // empty: f16 everywhere

  kv::LayerFormat layer(std::uint32_t index) const {
    return layers.empty() ? kv::LayerFormat() : layers[index];
  }
  bool rotates_keys(std::uint32_t index) const {
    return layer(index).keys != kernels::CacheType::kF16;
  }
  bool packs_any_keys() const {
    return std::any_of(layers.begin(), layers.end(), [](const kv::LayerFormat& layer) {
      return layer.keys != kernels::CacheType::kF16;
    });
  }
  bool rotates_values(std::uint32_t index) const {
    return layer(index).values != kernels::CacheType::kF16;
  }
};

// Whether a layer's keys are cached without their bias. A norm of the keys comes after the bias, so
// with one they are not.
bool caches_keys_without_bias(const Config& config, const KvFormat& format, std::uint32_t layer);

// Reads "q6", "q8/q6" (keys / values), and exceptions after it: "q6,0-1:q8,27:f16/q8".
// Errors: kInvalidArgument names the part that is wrong and what is allowed.
Result<KvFormat> parse_kv_format(std::string_view text, std::uint32_t num_layers);

// The same in its shortest form: "q6", "q8/q6", "q6,0-1:q8/q8".
std::string kv_format_name(const KvFormat& format);

}  // namespace cicada::model
