// Runs texts through a model for their logits: what perplexity, and every comparison of two ways to
// run one model, is made of.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cicada/base/ids.h"
#include "cicada/base/result.h"
#include "cicada/kv/page_pool.h"
#include "cicada/model/executor.h"

namespace cicada::engine {

struct ScorerOptions {
  std::size_t context = 512;                 // most tokens of a text
  std::size_t batch = 512;                   // tokens computed at once
  model::Role role = model::Role::kPrefill;  // decode: one token at a time
};

class Scorer {
 public:
  // Errors: kOutOfMemory.
  static Result<Scorer> create(const model::Model& model, platform::ThreadPool& pool,
                               const ScorerOptions& options);

  // Calls on_row(position, logits) for positions [first, text.size()), the workers at once, each
  // position once; the logits are gone when it returns.
  // Errors: kCancelled when is_cancelled said so; kInternal for logits that are not finite.
  using OnRow = std::function<void(std::size_t position, std::span<const float> logits)>;
  Result<void> run(std::span<const TokenId> text, std::size_t first,
                   const std::function<bool()>& is_cancelled, const OnRow& on_row);

 private:
  Scorer(platform::ThreadPool& pool, const ScorerOptions& options)
      : pool_(&pool), options_(options) {}

  Result<void> give_rows(std::size_t first_position, std::size_t count, const OnRow& on_row);

  platform::ThreadPool* pool_;
  ScorerOptions options_;
  std::unique_ptr<model::Executor> executor_;
  std::unique_ptr<kv::PagePool> pages_;
  std::vector<float> logits_;
};

// -log softmax(logits)[target], in double.
double negative_log_likelihood(std::span<const float> logits, TokenId target);

// Sum of p log(p / q), p and q being softmax of the two, in double. Shapes: both [vocab].
double divergence(std::span<const float> p_logits, std::span<const float> q_logits);

}  // namespace cicada::engine
