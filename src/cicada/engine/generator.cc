#include "cicada/engine/generator.h"

#include <algorithm>

namespace cicada::engine {
namespace {

using Clock = std::chrono::steady_clock;

double rate(std::size_t tokens, std::chrono::nanoseconds time) {
  const double seconds = std::chrono::duration<double>(time).count();
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0.0;
}

constexpr TokenId kNoToken{-1};

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
                                                     const GeneratorOptions& options) {
  CICADA_ASSIGN(CacheMemory cache,
                CacheMemory::create(model, {.context = options.context,
                                            .page_tokens = options.page_tokens,
                                            .pool_pages = options.pool_pages,
                                            .prefix_store = options.prefix_store}));
  const std::size_t max_rows = std::max<std::size_t>(1, std::min(options.chunk, options.context));
  CICADA_ASSIGN(
      auto executor,
      model::Executor::create(model, pool, {.max_rows = max_rows, .max_context = options.context}));
  const std::size_t logits = (1 + DraftLength::kMost) * model.config().vocab;
  CICADA_ASSIGN(tensor::Buffer buffer, tensor::Buffer::create(logits * sizeof(float)));
  return std::unique_ptr<Generator>(new Generator(model, std::move(executor), std::move(cache),
                                                  std::move(buffer), options.context));
}

Generator::Generator(const model::Model& model, std::unique_ptr<model::Executor> executor,
                     CacheMemory cache, tensor::Buffer logits, std::size_t context)
    : executor_(std::move(executor)),
      pool_(std::move(cache.pool)),
      prefixes_(*pool_, std::move(cache.store)),
      sequence_(*pool_),
      context_(context),
      logits_(std::move(logits)),
      sampler_(model.config().vocab),
      drafter_(context) {
  cached_.reserve(context);
  sequence_.expect(context);
  rows_.reserve(executor_->limits().max_rows);
}

// Brings the longest known beginning of a prompt into the sequence; all it has is then in cached_.
Result<void> Generator::reuse(std::span<const TokenId> prompt, const std::string& salt) {
  // The last token is always computed: its logits are what is asked for.
  const std::span<const TokenId> wanted = prompt.first(prompt.size() - 1);
  std::size_t same = 0;
  if (salt == salt_) {
    const std::size_t most = std::min(cached_.size(), wanted.size());
    while (same < most && cached_[same] == wanted[same]) ++same;
  }
  cached_.resize(same);
  sequence_.truncate(same);
  salt_ = salt;
  // Also looked for with the last token: its page may be known as a whole, and is then copied.
  same = std::min(prefixes_.extend(sequence_, same, salt, prompt), wanted.size());
  cached_.assign(prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(same));
  return sequence_.make_writable(same, prompt.size());
}

// True when the prompt was read to its end, false when the user stopped it.
Result<bool> Generator::prefill(std::span<const TokenId> prompt, const GenerateOptions& options,
                                Generation& result) {
  const auto start = Clock::now();
  CICADA_TRY(reuse(prompt, options.salt));
  result.reused_tokens = cached_.size();
  is_saved_ = false;
  CICADA_TRY(sequence_.reserve(prompt.size()));
  kv::Sequence* const sequences[] = {&sequence_};
  for (std::size_t at = cached_.size(); at < prompt.size();) {
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
    CICADA_TRY(executor_->run(rows_, sequences,
                              is_last ? logits_.as<float>().first(executor_->model().config().vocab)
                                      : std::span<float>()));
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
  auto answered = answer(prompt, options, on_token, result);
  // However it ended: decoded positions go, prefilled ones are remembered.
  sequence_.truncate(cached_.size());
  prefixes_.add(sequence_, salt_, cached_);
  if (!answered) return fail(std::move(answered).error());
  return result;
}

Result<void> Generator::answer(std::span<const TokenId> prompt, const GenerateOptions& options,
                               const std::function<bool(TokenId)>& on_token, Generation& result) {
  CICADA_ASSIGN(const bool is_read, prefill(prompt, options, result));
  if (!is_read) {
    result.reason = FinishReason::kCancelled;
    return {};
  }
  const std::size_t room = context_ - prompt.size();
  const std::size_t limit =
      options.max_tokens == 0 ? room : std::min<std::size_t>(options.max_tokens, room);
  result.tokens.reserve(limit);
  drafter_.reset(prompt);
  const auto start = Clock::now();
  CICADA_TRY(decode(prompt.size() + limit, options, on_token, result));
  result.decode_time = Clock::now() - start;
  return {};
}

void Generator::save_prefix() {
  if (is_saved_) return;
  is_saved_ = true;
  prefixes_.save(sequence_, salt_, cached_);
}

// Generates the tokens of positions up to `end`; the logits of the first are there.
Result<void> Generator::decode(std::size_t end, const GenerateOptions& options,
                               const std::function<bool(TokenId)>& on_token, Generation& result) {
  const std::size_t begin = result.prompt_tokens;
  std::size_t row = 0;      // of the logits, that of the next token
  std::size_t guessed = 0;  // rows after it, each right only if the tokens before are as guessed
  TokenId hint = kNoToken;  // the guess for the next token, run or not
  while (true) {
    const std::size_t position = begin + result.tokens.size();
    CICADA_ASSIGN(const TokenId token, sampler_.sample(logits_row(row), executor_->peak(row),
                                                       options.sampler, 0, position));
    if (std::find(options.end_tokens.begin(), options.end_tokens.end(), token) !=
        options.end_tokens.end()) {
      result.reason = FinishReason::kStop;
      return {};
    }
    result.tokens.push_back(token);
    if (!on_token(token)) {
      result.reason = FinishReason::kStopSequence;
      return {};
    }
    if (position + 1 == end) {
      result.reason = FinishReason::kLength;
      return {};
    }
    if (options.is_cancelled && options.is_cancelled()) {
      result.reason = FinishReason::kCancelled;
      return {};
    }
    if (guessed > 0) hint = rows_[row + 1].token;
    if (hint != kNoToken) draft_length_.note_guess(hint == token);
    // The row after this one was computed for the token that was guessed.
    if (guessed > 0 && hint == token) {
      drafter_.append(token);
      ++result.accepted_tokens;
      ++row;
      --guessed;
      hint = kNoToken;
      continue;
    }
    const std::size_t most = options.draft ? end - position - 2 : 0;
    CICADA_ASSIGN(guessed, step(token, position, most, result));
    row = 0;
    const std::span<const TokenId> next = drafter_.propose(1);
    hint = guessed > 0 || next.empty() ? kNoToken : next.front();
  }
}

// Runs `token` at `position`, and behind it what may follow. Returns how many guesses were run.
Result<std::size_t> Generator::step(TokenId token, std::size_t position, std::size_t most_drafted,
                                    Generation& result) {
  drafter_.append(token);
  const std::span<const TokenId> guesses = drafter_.propose(
      std::min({most_drafted, draft_length_.choose(), executor_->limits().max_rows - 1}));
  rows_.clear();
  rows_.push_back({.token = token,
                   .position = static_cast<std::int64_t>(position),
                   .sequence = 0,
                   .wants_logits = true,
                   .role = model::Role::kDecode});
  for (const TokenId guess : guesses) {
    model::Row row = rows_.back();
    row.token = guess;
    ++row.position;
    rows_.push_back(row);
  }
  // Pages are taken as the answer grows, so that a short one costs no remembered prefix.
  if (auto room = sequence_.reserve(position + rows_.size()); !room) {
    return fail(std::move(room).error().with_context(
        fmt::format("after {} tokens of the answer", result.tokens.size())));
  }
  kv::Sequence* const sequences[] = {&sequence_};
  const std::size_t vocab = executor_->model().config().vocab;
  const auto start = Clock::now();
  CICADA_TRY(executor_->run(rows_, sequences, logits_.as<float>().first(rows_.size() * vocab)));
  draft_length_.note_step(guesses.size(),
                          std::chrono::duration<double>(Clock::now() - start).count());
  result.drafted_tokens += guesses.size();
  return guesses.size();
}

std::span<const float> Generator::logits_row(std::size_t row) const {
  const std::size_t vocab = executor_->model().config().vocab;
  return logits_.as<float>().subspan(row * vocab, vocab);
}

}  // namespace cicada::engine
