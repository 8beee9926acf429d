#include "cicada/engine/sampler.h"

#include <algorithm>
#include <cmath>

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

struct Largest {
  std::size_t id = 0;
  float logit = -INFINITY;
  bool is_sound = false;  // it is a number, and no other is NaN or plus infinity
};

Largest find_largest(std::span<const float> logits) {
  Largest largest;
  bool is_damaged = false;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    is_damaged |= !(logits[i] < INFINITY);  // NaN too
    if (logits[i] > largest.logit) {
      largest.logit = logits[i];
      largest.id = i;
    }
  }
  largest.is_sound = !is_damaged && largest.logit > -INFINITY;
  return largest;
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

Result<TokenId> greedy(std::span<const float> logits) {
  const Largest largest = find_largest(logits);
  if (!largest.is_sound) return damaged(logits);
  return TokenId(static_cast<std::int32_t>(largest.id));
}

Result<void> check_logits(std::span<const float> logits) {
  if (!find_largest(logits).is_sound) return damaged(logits);
  return {};
}

Result<TokenId> Sampler::sample(std::span<const float> logits, const SamplerOptions& options,
                                std::uint64_t choice, std::uint64_t position) {
  CICADA_ASSIGN(const TokenId best, greedy(logits));
  if (options.temperature <= 0.0F || options.top_k == 1) return best;
  const float largest = logits[static_cast<std::size_t>(best.value)];

  // Below this the weight is 0 in double, so the token can never be drawn.
  constexpr double kLeastExponent = -745.0;
  candidates_.clear();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double exponent = (static_cast<double>(logits[i]) - static_cast<double>(largest)) /
                            static_cast<double>(options.temperature);
    if (!(exponent > kLeastExponent)) continue;
    candidates_.push_back({logits[i], static_cast<std::int32_t>(i), std::exp(exponent)});
  }
  // min-p is measured against the most likely token, whose weight is 1; what it drops is dropped
  // whatever the other cuts keep.
  const auto is_likelier = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  };
  auto end = candidates_.end();
  if (options.top_k > 0 && options.top_k < candidates_.size()) {
    end = candidates_.begin() + options.top_k;
    std::nth_element(candidates_.begin(), end - 1, candidates_.end(), is_likelier);
  }
  if (options.top_p < 1.0F) {
    double total = 0.0;
    for (auto it = candidates_.begin(); it != end; ++it) total += it->weight;
    const double wanted = static_cast<double>(options.top_p) * total;
    // Sorted from the front in growing pieces until they hold enough.
    double sum = 0.0;
    auto sorted_end = candidates_.begin();
    auto keep_end = candidates_.begin();
    std::ptrdiff_t piece = 64;
    while (keep_end != end && (sum < wanted || keep_end == candidates_.begin())) {
      if (keep_end == sorted_end) {
        sorted_end += std::min(piece, end - sorted_end);
        std::partial_sort(keep_end, sorted_end, end, is_likelier);
        piece *= 4;
      }
      sum += keep_end->weight;
      ++keep_end;
    }
    end = keep_end;
  }
  if (options.min_p > 0.0F) {
    end = std::partition(candidates_.begin(), end, [&](const Candidate& candidate) {
      return candidate.weight >= static_cast<double>(options.min_p);
    });
  }
  // Drawn in the order of ids, so that the cuts' own order does not matter.
  std::sort(candidates_.begin(), end,
            [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
  double total = 0.0;
  for (auto it = candidates_.begin(); it != end; ++it) total += it->weight;
  double left = counter_uniform(options.seed, choice, position) * total;
  for (auto it = candidates_.begin(); it != end; ++it) {
    left -= it->weight;
    if (left < 0.0) return TokenId(it->id);
  }
  return best;  // rounding used up the last bit
}

}  // namespace cicada::engine
