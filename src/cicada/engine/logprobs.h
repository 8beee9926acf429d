// Log-probabilities of the model's own distribution: before temperature, penalties and cuts.
// Threads: one thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cicada/base/ids.h"
#include "cicada/messages/messages.h"
#include "cicada/model/executor.h"

namespace cicada::engine {

class Logprobs {
 public:
  explicit Logprobs(std::size_t vocab) : weights_(vocab) { order_.reserve(vocab); }

  // Shapes: logits [vocab]; peak: theirs, sound. Call before the others, for each row anew.
  void set(std::span<const float> logits, const model::Peak& peak);
  float of(TokenId id) const;
  // The `count` most likely, descending; ties by id.
  std::vector<messages::Logprob> top(std::size_t count);

 private:
  std::vector<double> weights_;  // [vocab]
  std::vector<TokenId> order_;
  std::span<const float> logits_;
  double log_total_ = 0.0;  // of e^logit
};

}  // namespace cicada::engine
