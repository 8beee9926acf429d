// Softmax without its division: what the sampler draws by.
// Threads: a pure function.
#pragma once

#include <span>

namespace cicada::engine {

// weights[i] = e^((logits[i] - largest) / temperature), to 1e-14 of it; 0 where that is below
// 1e-307. No call to the C library, so the bits are those of every machine. Minus infinity has
// weight 0; no logit is NaN or above `largest`. Shapes: [vocab] both.
void softmax_weights(std::span<const float> logits, float largest, float temperature,
                     std::span<double> weights);

}  // namespace cicada::engine
