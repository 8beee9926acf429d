#include "cicada/model/rope_range.h"

#include <algorithm>
#include <cmath>

namespace cicada::model {

double rope_range(double base, double factor) {
  constexpr double kScale = 0.0424;
  constexpr double kExponent = 1.628;
  return factor * std::pow(base / kScale, 1.0 / kExponent);
}

std::optional<std::uint64_t> rope_range(const Config& config) {
  if (config.rope_dim == 0) return std::nullopt;
  std::optional<std::uint64_t> least;
  for (const LayerConfig& layer : config.layers) {
    const double range = rope_range(layer.rope_base, layer.rope_factor);
    if (layer.window != 0 && range >= layer.window) continue;
    constexpr double kMost = 1e18;
    const auto tokens = static_cast<std::uint64_t>(std::min(range, kMost));
    if (!least || tokens < *least) least = tokens;
  }
  return least;
}

}  // namespace cicada::model
