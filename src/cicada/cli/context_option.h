// The context of commands that answer: how many tokens of a prompt and its answer there may be.
// Threads: the main thread only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cicada/model/config.h"

namespace cicada::cli {

inline constexpr std::uint32_t kMaxContext = 1U << 20;

// `wanted`, or where it is 0 what the model was trained for, at most `most_by_default`. Says so
// when it is more than the model was trained for, or than its RoPE base supports.
std::size_t context_tokens(std::uint32_t wanted, std::uint32_t most_by_default,
                           const model::Config& config);

}  // namespace cicada::cli
