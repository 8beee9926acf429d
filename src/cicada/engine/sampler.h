// From logits to a token.
//
// The generator is counter-based: the number drawn for a token depends on (seed, choice, position)
// only, so a replayed or batched generation draws the same. Ties go to the lowest id. The
// vocabulary is never sorted whole. Order: temperature, then top-k, top-p, min-p on what is left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cicada/base/ids.h"
#include "cicada/base/result.h"
#include "cicada/model/executor.h"

namespace cicada::engine {

struct SamplerOptions {
  float temperature = 0.0F;  // 0: always the most likely token
  std::uint32_t top_k = 0;   // keep this many most likely; 0: all
  float top_p = 1.0F;        // keep the fewest most likely whose probabilities reach this; 1: all
  float min_p = 0.0F;        // drop what is less likely than this share of the most likely; 0: none
  std::uint64_t seed = 0;
};

// Errors: kInvalidArgument names the option, its value and what is allowed; NaN is never allowed.
Result<void> check(const SamplerOptions& options);

// A number in [0, 1) for a place in a generation.
double counter_uniform(std::uint64_t seed, std::uint64_t choice, std::uint64_t position);

class Sampler {
 public:
  // Working memory is sized here for `vocab` tokens.
  explicit Sampler(std::size_t vocab) : weights_(vocab) { candidates_.reserve(vocab); }

  // Shapes: logits [vocab]; peak: theirs. Allocates nothing but an error. Errors: those of
  // check_logits().
  Result<TokenId> sample(std::span<const float> logits, const model::Peak& peak,
                         const SamplerOptions& options, std::uint64_t choice,
                         std::uint64_t position);

 private:
  struct Candidate {
    float logit;
    std::int32_t id;
    double weight;  // e^((logit - largest) / temperature)
  };

  static bool is_likelier(const Candidate& a, const Candidate& b);
  void cut(std::span<const float> logits, const SamplerOptions& options, std::span<double> weights);
  std::vector<Candidate>::iterator most_likely(double wanted);

  std::vector<double> weights_;  // [vocab]
  std::vector<Candidate> candidates_;
};

// Whether a token can be chosen from logits [vocab] with this peak, or their softmax taken: a
// damaged or overflowing model gives NaN or infinity. Single entries of minus infinity are fine.
// Errors: kInternal names the first token whose logit is NaN or plus infinity, or says that none is
// above minus infinity.
Result<void> check_logits(std::span<const float> logits, const model::Peak& peak);

}  // namespace cicada::engine
