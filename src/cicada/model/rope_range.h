// How far apart positions may lie so that a RoPE base still tells them apart.
//
// The bound: base >= 0.0424 * L^1.628, a fit over models and lengths; with a smaller base a model
// may write well beyond L and no longer find what it read. Positions divided by a factor (linear
// scaling) reach that factor further. Source: "Base of RoPE Bounds Context Length", arXiv
// 2405.14591, figure 1.
#pragma once

#include <cstdint>
#include <optional>

#include "cicada/model/config.h"

namespace cicada::model {

// The most tokens that a base supports by the bound.
double rope_range(double base, double factor = 1.0);

// The same for a model: the least of its layers. A layer with a window is no limit where its base
// supports the window. Nothing where no layer limits it.
std::optional<std::uint64_t> rope_range(const Config& config);

}  // namespace cicada::model
