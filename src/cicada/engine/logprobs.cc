#include "cicada/engine/logprobs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "cicada/engine/softmax.h"

namespace cicada::engine {

void Logprobs::set(std::span<const float> logits, const model::Peak& peak) {
  logits_ = logits;
  const std::span<double> weights = std::span(weights_).first(logits.size());
  softmax_weights(logits, peak.value, 1.0F, weights);
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  log_total_ = static_cast<double>(peak.value) + std::log(total);
}

float Logprobs::of(TokenId id) const {
  const auto logit = static_cast<double>(logits_[static_cast<std::size_t>(id.value)]);
  return static_cast<float>(logit - log_total_);
}

std::vector<messages::Logprob> Logprobs::top(std::size_t count) {
  order_.clear();
  for (std::size_t i = 0; i < logits_.size(); ++i) order_.emplace_back(static_cast<int>(i));
  count = std::min(count, order_.size());
  const auto end = order_.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(order_.begin(), end, order_.end(), [this](TokenId a, TokenId b) {
    const float left = logits_[static_cast<std::size_t>(a.value)];
    const float right = logits_[static_cast<std::size_t>(b.value)];
    return left != right ? left > right : a < b;
  });
  std::vector<messages::Logprob> top;
  top.reserve(count);
  for (auto it = order_.begin(); it != end; ++it) top.push_back({.token = *it, .logprob = of(*it)});
  return top;
}

}  // namespace cicada::engine
