// What a request adds to and takes off the model's logits before a token is chosen: biases by id,
// and penalties on what was said before.
// Threads: one thread.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>

#include "cicada/base/ids.h"
#include "cicada/base/result.h"
#include "cicada/messages/messages.h"
#include "cicada/model/executor.h"

namespace cicada::engine {

// Errors: kInvalidArgument names the option, its value and what is allowed; a bias for an id
// outside the vocabulary is one too.
Result<void> check_penalties(const messages::Sampling& sampling, std::size_t vocab);

class Penalties {
 public:
  // `sampling` must outlive this.
  Penalties(const messages::Sampling& sampling, std::span<const TokenId> prompt);

  // Whether any logit changes at all.
  bool is_active() const;
  // A token of the answer.
  void note(TokenId id);
  // Shapes: logits, out [vocab]. Returns out's peak. Logits that are not finite stay so.
  model::Peak apply(std::span<const float> logits, std::span<float> out) const;

 private:
  const messages::Sampling* sampling_;
  bool counts_ = false;  // any penalty is on
  // Ids of prompt and answer, and how often the answer has each.
  std::unordered_map<TokenId, std::uint32_t> seen_;
};

}  // namespace cicada::engine
