#include "cicada/engine/penalties.h"

#include <algorithm>
#include <cmath>

namespace cicada::engine {

Result<void> check_penalties(const messages::Sampling& sampling, std::size_t vocab) {
  const auto check_range = [](const char* name, float value, float least,
                              float most) -> Result<void> {
    if (value >= least && value <= most) return {};
    return fail(Code::kInvalidArgument, "{}: is {}, {} to {} is allowed", name, value, least, most);
  };
  CICADA_TRY(check_range("presence_penalty", sampling.presence_penalty, -2.0F, 2.0F));
  CICADA_TRY(check_range("frequency_penalty", sampling.frequency_penalty, -2.0F, 2.0F));
  if (!(sampling.repetition_penalty > 0.0F && sampling.repetition_penalty <= 100.0F)) {
    return fail(Code::kInvalidArgument,
                "repetition_penalty: is {}, more than 0 and at most 100 is allowed",
                sampling.repetition_penalty);
  }
  for (const auto& [id, bias] : sampling.logit_bias) {
    if (id.value < 0 || static_cast<std::size_t>(id.value) >= vocab) {
      return fail(Code::kInvalidArgument, "logit_bias: token {} is not one of the {}", id.value,
                  vocab);
    }
    if (!(std::fabs(bias) <= 100.0F)) {
      return fail(Code::kInvalidArgument, "logit_bias.{}: is {}, -100 to 100 is allowed", id.value,
                  bias);
    }
  }
  return {};
}

Penalties::Penalties(const messages::Sampling& sampling, std::span<const TokenId> prompt)
    : sampling_(&sampling),
      counts_(sampling.presence_penalty != 0.0F || sampling.frequency_penalty != 0.0F ||
              sampling.repetition_penalty != 1.0F) {
  if (sampling.repetition_penalty == 1.0F) return;
  for (const TokenId id : prompt) seen_.try_emplace(id);
}

bool Penalties::is_active() const { return counts_ || !sampling_->logit_bias.empty(); }

void Penalties::note(TokenId id) {
  if (counts_) ++seen_[id];
}

model::Peak Penalties::apply(std::span<const float> logits, std::span<float> out) const {
  std::copy(logits.begin(), logits.end(), out.begin());
  for (const auto& [id, bias] : sampling_->logit_bias) {
    out[static_cast<std::size_t>(id.value)] += bias;
  }
  // Each id once, so the order in which the table gives them does not matter.
  for (const auto& [id, in_answer] : seen_) {
    float& logit = out[static_cast<std::size_t>(id.value)];
    logit = logit > 0.0F ? logit / sampling_->repetition_penalty
                         : logit * sampling_->repetition_penalty;
    if (in_answer == 0) continue;
    logit -= sampling_->presence_penalty;
    logit -= sampling_->frequency_penalty * static_cast<float>(in_answer);
  }
  model::Peak peak;
  for (std::size_t i = 0; i < out.size(); ++i) {
    peak.is_damaged = peak.is_damaged || !(out[i] < INFINITY);
    if (out[i] > peak.value) {
      peak.value = out[i];
      peak.index = static_cast<std::uint32_t>(i);
    }
  }
  return peak;
}

}  // namespace cicada::engine
