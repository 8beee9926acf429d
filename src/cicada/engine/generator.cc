#include "cicada/engine/generator.h"

#include <algorithm>

namespace cicada::engine {
namespace {

using Clock = std::chrono::steady_clock;

double rate(std::size_t tokens, std::chrono::nanoseconds time) {
  const double seconds = std::chrono::duration<double>(time).count();
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0.0;
}

}  // namespace

std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kStopSequence:
      return "stop_sequence";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
  }
  return "";
}

double Generation::prefill_rate() const {
  return rate(prompt_tokens - reused_tokens, prefill_time);
}

double Generation::decode_rate() const {
  // The first token comes from the prefill; each further one took a step.
  return tokens.size() > 1 ? rate(tokens.size() - 1, decode_time) : 0.0;
}

Result<std::unique_ptr<Generator>> Generator::create(const model::Model& model,
                                                     platform::ThreadPool& pool,
                                                     std::size_t context, std::size_t chunk) {
  const std::size_t max_rows = std::max<std::size_t>(1, std::min(chunk, context));
  CICADA_ASSIGN(auto executor, model::Executor::create(
                                   model, pool, {.max_rows = max_rows, .max_context = context}));
  const std::size_t pages = (context + kv::kPageTokens - 1) / kv::kPageTokens;
  CICADA_ASSIGN(kv::PagePool page_pool, kv::PagePool::create(model.kv_shape(), pages));
  return std::unique_ptr<Generator>(
      new Generator(model, std::move(executor), std::move(page_pool), context));
}

Generator::Generator(const model::Model& model, std::unique_ptr<model::Executor> executor,
                     kv::PagePool pool, std::size_t context)
    : executor_(std::move(executor)),
      pool_(std::make_unique<kv::PagePool>(std::move(pool))),
      sequence_(*pool_),
      context_(context),
      logits_(model.config().vocab),
      sampler_(model.config().vocab) {
  cached_.reserve(context);
  rows_.reserve(executor_->limits().max_rows);
}

// True when the prompt was read to its end, false when the user stopped it.
Result<bool> Generator::prefill(std::span<const TokenId> prompt, const GenerateOptions& options,
                                Generation& result) {
  const auto start = Clock::now();
  std::size_t same = 0;
  // The last token is always computed: its logits are what is asked for.
  while (same < cached_.size() && same + 1 < prompt.size() && cached_[same] == prompt[same]) ++same;
  cached_.resize(same);
  result.reused_tokens = same;
  CICADA_TRY(sequence_.reserve(prompt.size()));
  kv::Sequence* const sequences[] = {&sequence_};
  for (std::size_t at = same; at < prompt.size();) {
    if (options.is_cancelled && options.is_cancelled()) return false;
    const std::size_t count = std::min(executor_->limits().max_rows, prompt.size() - at);
    rows_.clear();
    for (std::size_t i = at; i < at + count; ++i) {
      rows_.push_back({.token = prompt[i],
                       .position = static_cast<std::int64_t>(i),
                       .sequence = 0,
                       .wants_logits = i + 1 == prompt.size()});
    }
    const bool is_last = at + count == prompt.size();
    CICADA_TRY(
        executor_->run(rows_, sequences, is_last ? std::span<float>(logits_) : std::span<float>()));
    cached_.insert(cached_.end(), prompt.begin() + static_cast<std::ptrdiff_t>(at),
                   prompt.begin() + static_cast<std::ptrdiff_t>(at + count));
    at += count;
  }
  result.prefill_time = Clock::now() - start;
  return true;
}

Result<Generation> Generator::generate(std::span<const TokenId> prompt,
                                       const GenerateOptions& options,
                                       const std::function<bool(TokenId)>& on_token) {
  CICADA_TRY(check(options.sampler));
  if (prompt.empty()) return fail(Code::kInvalidArgument, "the prompt has no tokens");
  if (prompt.size() >= context_) {
    return fail(Code::kOutOfCapacity,
                "the prompt has {} tokens, the context of {} leaves room for {} and one to answer",
                prompt.size(), context_, context_ - 1);
  }
  Generation result;
  result.prompt_tokens = prompt.size();
  CICADA_ASSIGN(const bool is_read, prefill(prompt, options, result));
  if (!is_read) {
    result.reason = FinishReason::kCancelled;
    return result;
  }
  const std::size_t room = context_ - prompt.size();
  const std::size_t limit =
      options.max_tokens == 0 ? room : std::min<std::size_t>(options.max_tokens, room);
  result.tokens.reserve(limit);
  CICADA_TRY(sequence_.reserve(prompt.size() + limit));
  kv::Sequence* const sequences[] = {&sequence_};
  const auto start = Clock::now();
  while (true) {
    const std::size_t position = prompt.size() + result.tokens.size();
    CICADA_ASSIGN(const TokenId token, sampler_.sample(logits_, options.sampler, 0, position));
    if (std::find(options.end_tokens.begin(), options.end_tokens.end(), token) !=
        options.end_tokens.end()) {
      result.reason = FinishReason::kStop;
      break;
    }
    result.tokens.push_back(token);
    if (!on_token(token)) {
      result.reason = FinishReason::kStopSequence;
      break;
    }
    if (result.tokens.size() == limit) {
      result.reason = FinishReason::kLength;
      break;
    }
    if (options.is_cancelled && options.is_cancelled()) {
      result.reason = FinishReason::kCancelled;
      break;
    }
    const model::Row row{.token = token,
                         .position = static_cast<std::int64_t>(position),
                         .sequence = 0,
                         .wants_logits = true};
    CICADA_TRY(executor_->run({&row, 1}, sequences, logits_));
  }
  result.decode_time = Clock::now() - start;
  return result;
}

}  // namespace cicada::engine
