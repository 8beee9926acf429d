// What caching keys and values in fewer bits costs a model, measured before it is used.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "cicada/base/result.h"
#include "cicada/model/model.h"
#include "cicada/tokenizer/tokenizer.h"

namespace cicada::engine {

struct KvLoss {
  double divergence = 0.0;  // from f16, nats a token, mean over the text
  std::size_t tokens = 0;
};

// A loss above this is refused unless the user insists: half a percent of perplexity, if all of it
// were loss (docs/kv.md).
inline constexpr double kMostKvLoss = 0.005;

// The text it is measured on: prose, a dialogue, numbers, a list and code, ours.
std::string_view kv_gate_text();

// Runs the text through the model with f16 and with `format`, and leaves it with `format`.
// Errors: kCancelled; kOutOfMemory; kInternal for logits that are not finite.
Result<KvLoss> measure_kv_loss(model::Model& model, platform::ThreadPool& pool,
                               const tokenizer::Tokenizer& tokenizer, const model::KvFormat& format,
                               const std::function<bool()>& is_cancelled);

}  // namespace cicada::engine
