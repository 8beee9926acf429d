#include "cicada/engine/scorer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cicada/engine/sampler.h"

namespace cicada::engine {
namespace {

// Logits exist for this many rows at a time.
constexpr std::size_t kHeadRows = 16;

// log of the sum of e^logit.
double log_sum_exp(std::span<const float> logits) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const float logit : logits) largest = std::max(largest, static_cast<double>(logit));
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  return std::log(sum) + largest;
}

}  // namespace

Result<Scorer> Scorer::create(const model::Model& model, platform::ThreadPool& pool,
                              const ScorerOptions& options) {
  Scorer scorer(pool, options);
  CICADA_ASSIGN(scorer.executor_,
                model::Executor::create(model, pool,
                                        {.max_rows = std::min(options.batch, options.context),
                                         .max_context = options.context,
                                         .max_logit_rows = kHeadRows}));
  const std::size_t pages = (options.context + kv::kPageTokens - 1) / kv::kPageTokens;
  CICADA_ASSIGN(auto page_pool, kv::PagePool::create(model.kv_layout(), pages));
  scorer.pages_ = std::make_unique<kv::PagePool>(std::move(page_pool));
  scorer.logits_.resize(kHeadRows * model.config().vocab);
  return scorer;
}

Result<void> Scorer::run(std::span<const TokenId> text, std::size_t first,
                         const std::function<bool()>& is_cancelled, const OnRow& on_row) {
  kv::Sequence sequence(*pages_);
  CICADA_TRY(sequence.reserve(text.size()));
  kv::Sequence* const sequences[] = {&sequence};
  const bool is_decode = options_.role == model::Role::kDecode;
  const std::size_t step = is_decode ? 1 : executor_->limits().max_rows;
  std::vector<model::Row> rows;
  for (std::size_t at = 0; at < text.size(); at += step) {
    if (is_cancelled()) return fail(Code::kCancelled, "stopped within a text");
    const std::size_t end = std::min(at + step, text.size());
    rows.clear();
    for (std::size_t i = at; i < end; ++i) {
      rows.push_back({.token = text[i],
                      .position = static_cast<std::int64_t>(i),
                      .sequence = 0,
                      .wants_logits = i >= first,
                      .role = options_.role});
    }
    CICADA_TRY(executor_->run(rows, sequences, {}));
    const std::size_t wanted = std::max(at, first);
    if (end > wanted) CICADA_TRY(give_rows(wanted, end - wanted, on_row));
  }
  return {};
}

Result<void> Scorer::give_rows(std::size_t first_position, std::size_t count, const OnRow& on_row) {
  const std::size_t vocab = executor_->model().config().vocab;
  for (std::size_t begin = 0; begin < count; begin += kHeadRows) {
    const std::size_t rows = std::min(kHeadRows, count - begin);
    executor_->head(begin, rows, std::span(logits_).first(rows * vocab));
    for (std::size_t i = 0; i < rows; ++i) {
      if (executor_->peak(i).is_sound()) continue;
      CICADA_TRY(check_logits(std::span(logits_).subspan(i * vocab, vocab), executor_->peak(i)));
    }
    pool_->run([&](std::size_t worker) {
      for (std::size_t i = worker; i < rows; i += pool_->size()) {
        on_row(first_position + begin + i, std::span(logits_).subspan(i * vocab, vocab));
      }
    });
  }
  return {};
}

double negative_log_likelihood(std::span<const float> logits, TokenId target) {
  return log_sum_exp(logits) - static_cast<double>(logits[static_cast<std::size_t>(target.value)]);
}

double divergence(std::span<const float> p_logits, std::span<const float> q_logits) {
  const double p_sum = log_sum_exp(p_logits);
  const double q_sum = log_sum_exp(q_logits);
  double sum = 0.0;
  for (std::size_t i = 0; i < p_logits.size(); ++i) {
    const double p = static_cast<double>(p_logits[i]) - p_sum;
    sum += std::exp(p) * (p - (static_cast<double>(q_logits[i]) - q_sum));
  }
  return std::max(0.0, sum);
}

}  // namespace cicada::engine
