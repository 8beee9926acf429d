#include "cicada/engine/sampler.h"

#include <algorithm>
#include <cmath>

#include "cicada/engine/softmax.h"

namespace cicada::engine {
namespace {

// One round of splitmix64: every input bit changes every output bit.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

Result<void> check_share(const char* name, float value) {
  if (value >= 0.0F && value <= 1.0F) return {};
  return fail(Code::kInvalidArgument, "{}: is {}, 0 to 1 is allowed", name, value);
}

tl::unexpected<Error> damaged(std::span<const float> logits) {
  const auto first = std::ranges::find_if(logits, [](float logit) { return !(logit < INFINITY); });
  if (first == logits.end()) {
    return fail(Code::kInternal, "the model's logits are not finite: all {} are minus infinity",
                logits.size());
  }
  return fail(Code::kInternal,
              "the model's logits are not finite: that of token {} is {} (verify says whether the "
              "weights are)",
              first - logits.begin(), std::isnan(*first) ? "NaN" : "infinite");
}

}  // namespace

Result<void> check(const SamplerOptions& options) {
  if (!(options.temperature >= 0.0F && options.temperature <= 100.0F)) {
    return fail(Code::kInvalidArgument, "temperature: is {}, 0 to 100 is allowed",
                options.temperature);
  }
  CICADA_TRY(check_share("top-p", options.top_p));
  CICADA_TRY(check_share("min-p", options.min_p));
  return {};
}

double counter_uniform(std::uint64_t seed, std::uint64_t choice, std::uint64_t position) {
  const std::uint64_t bits = mix(mix(mix(seed) ^ choice) ^ position);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

Result<void> check_logits(std::span<const float> logits, const model::Peak& peak) {
  if (!peak.is_sound()) return damaged(logits);
  return {};
}

Result<TokenId> Sampler::sample(std::span<const float> logits, const model::Peak& peak,
                                const SamplerOptions& options, std::uint64_t choice,
                                std::uint64_t position) {
  CICADA_TRY(check_logits(logits, peak));
  const TokenId best(static_cast<std::int32_t>(peak.index));
  if (options.temperature <= 0.0F || options.top_k == 1) return best;
  const std::span<double> weights = std::span(weights_).first(logits.size());
  softmax_weights(logits, peak.value, options.temperature, weights);
  if (options.top_k > 0 || options.top_p < 1.0F || options.min_p > 0.0F) {
    cut(logits, options, weights);
  }
  double total = 0.0;
  for (const double weight : weights) total += weight;
  double left = counter_uniform(options.seed, choice, position) * total;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0.0) return TokenId(static_cast<std::int32_t>(i));
  }
  return best;  // rounding used up the last bit
}

bool Sampler::is_likelier(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

// Sets the weights of what the options drop to 0.
void Sampler::cut(std::span<const float> logits, const SamplerOptions& options,
                  std::span<double> weights) {
  // min-p is measured against the most likely token, whose weight is 1. Unless top-k decides what
  // top-p is a share of, it can go first and leaves top-p little to do.
  const auto min_p = static_cast<double>(options.min_p);
  const double first_floor = options.top_k == 0 ? min_p : 0.0;
  candidates_.clear();
  double total = 0.0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0.0) continue;
    total += weights[i];
    if (weights[i] < first_floor) {
      weights[i] = 0.0;
    } else {
      candidates_.push_back({logits[i], static_cast<std::int32_t>(i), weights[i]});
    }
  }
  const auto drop = [&](auto begin) {
    for (auto it = begin; it != candidates_.end(); ++it) {
      weights[static_cast<std::size_t>(it->id)] = 0.0;
    }
    candidates_.erase(begin, candidates_.end());
  };
  if (options.top_k > 0 && options.top_k < candidates_.size()) {
    const auto end = candidates_.begin() + options.top_k;
    std::nth_element(candidates_.begin(), end - 1, candidates_.end(), is_likelier);
    drop(end);
    total = 0.0;  // top-p is a share of what top-k left
    for (const Candidate& candidate : candidates_) total += candidate.weight;
  }
  if (options.top_p < 1.0F) drop(most_likely(static_cast<double>(options.top_p) * total));
  for (double& weight : weights) weight = weight < min_p ? 0.0 : weight;
}

// Puts the most likely candidates first, until their weights sum to `wanted`; returns where they
// end.
std::vector<Sampler::Candidate>::iterator Sampler::most_likely(double wanted) {
  // Sorted from the front in growing pieces until they hold enough.
  double sum = 0.0;
  auto sorted_end = candidates_.begin();
  auto keep_end = candidates_.begin();
  std::ptrdiff_t piece = 64;
  while (keep_end != candidates_.end() && (sum < wanted || keep_end == candidates_.begin())) {
    if (keep_end == sorted_end) {
      sorted_end += std::min(piece, candidates_.end() - sorted_end);
      std::partial_sort(keep_end, sorted_end, candidates_.end(), is_likelier);
      piece *= 4;
    }
    sum += keep_end->weight;
    ++keep_end;
  }
  return keep_end;
}

}  // namespace cicada::engine
