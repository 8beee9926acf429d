#include "cicada/engine/engine.h"

#include <algorithm>
#include <utility>

namespace cicada::engine {
namespace {

using messages::Finish;

// Enough for what a burst of prompts takes before the warmer gets its turn.
constexpr std::size_t kWarmPages = 128;

std::uint64_t nanoseconds(std::chrono::steady_clock::duration time) {
  const auto count = std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
  return count > 0 ? static_cast<std::uint64_t>(count) : 0;
}

SamplerOptions sampler_options(const messages::Sampling& sampling) {
  return {.temperature = sampling.temperature,
          .top_k = sampling.top_k,
          .top_p = sampling.top_p,
          .min_p = sampling.min_p,
          .seed = sampling.seed};
}

}  // namespace

struct Engine::Request {
  Request(messages::Submit&& what, kv::PagePool& pool)
      : submit(std::move(what)), sequence(pool), penalties(submit.sampling, submit.prompt) {
    prompt_tokens = submit.prompt.size();
    ids = std::move(submit.prompt);
    ids.insert(ids.end(), submit.emitted.begin(), submit.emitted.end());
    for (const TokenId id : submit.emitted) penalties.note(id);
  }

  std::span<const TokenId> prompt() const { return std::span(ids).first(prompt_tokens); }

  messages::Submit submit;  // its ids are in `ids`
  std::vector<TokenId> ids;
  std::size_t prompt_tokens = 0;
  std::size_t end = 0;         // of `ids`, at most
  std::size_t prefilled = 0;   // of the prompt: in the sequence, computed in the prefill role
  std::size_t remembered = 0;  // of these, given to the tree
  kv::Sequence sequence;
  bool has_room = false;  // admitted: the sequence is its own
  Penalties penalties;
  RequestId waits_for = 0;      // who computes a beginning of this prompt …
  std::size_t waits_until = 0;  // … up to so many tokens
  bool is_waited_for = false;
};

Result<std::unique_ptr<Engine>> Engine::create(const model::Model& model,
                                               platform::ThreadPool& pool,
                                               const EngineOptions& options) {
  CICADA_ASSIGN(CacheMemory cache,
                CacheMemory::create(model, {.context = options.context,
                                            .page_tokens = options.page_tokens,
                                            .pool_pages = options.pool_pages,
                                            .prefix_store = options.prefix_store}));
  const std::size_t max_rows = std::max(options.budget.max_rows, options.max_running);
  CICADA_ASSIGN(auto executor, model::Executor::create(model, pool,
                                                       {.max_rows = max_rows,
                                                        .max_sequences = options.max_running,
                                                        .max_context = options.context}));
  const std::size_t logits = options.max_running * model.config().vocab;
  CICADA_ASSIGN(tensor::Buffer buffer, tensor::Buffer::create(logits * sizeof(float)));
  return std::unique_ptr<Engine>(
      new Engine(model, options, std::move(executor), std::move(cache), std::move(buffer)));
}

Engine::Engine(const model::Model& model, const EngineOptions& options,
               std::unique_ptr<model::Executor> executor, CacheMemory cache, tensor::Buffer logits)
    : model_(&model),
      options_(options),
      executor_(std::move(executor)),
      pool_(std::move(cache.pool)),
      warmer_(*pool_, kWarmPages),
      prefixes_(*pool_, std::move(cache.store)),
      scheduler_({.max_running = options.max_running, .max_rows = executor_->limits().max_rows},
                 *this),
      budget_(options.budget),
      sampler_(model.config().vocab),
      logprobs_(model.config().vocab),
      logits_(std::move(logits)),
      adjusted_(model.config().vocab) {
  rows_.reserve(executor_->limits().max_rows);
  sequences_.reserve(options.max_running);
  stats_.kv_pages = pool_->num_pages();
}

Engine::~Engine() = default;

messages::Hello Engine::hello() const {
  const model::Config& config = model_->config();
  messages::Hello hello{.numerics_id = model_->numerics_id(),
                        .architecture = config.architecture,
                        .rope_theta = config.layers.empty() ? 0.0 : config.layers[0].rope_base,
                        .zeroed = model_->plan().elided,
                        .context = static_cast<std::uint32_t>(options_.context),
                        .max_running = static_cast<std::uint32_t>(options_.max_running),
                        .kv_pages = pool_->num_pages(),
                        .page_tokens = static_cast<std::uint32_t>(options_.page_tokens)};
  return hello;
}

std::uint64_t Engine::pool_bytes() const {
  return static_cast<std::uint64_t>(pool_->num_pages()) * pool_->layout().page_bytes();
}

messages::Stats Engine::take_stats() {
  messages::Stats stats = stats_;
  stats_.step_tokens.clear();
  stats.running = static_cast<std::uint32_t>(scheduler_.num_running());
  stats.waiting = static_cast<std::uint32_t>(scheduler_.num_waiting());
  stats.kv_pages_held = pool_->num_pages() - pool_->num_available();
  stats.preemptions = scheduler_.num_preemptions();
  return stats;
}

void Engine::receive(messages::ToEngine message, Events& events) {
  if (auto* submitted = std::get_if<messages::Submit>(&message)) {
    submit(std::move(*submitted), events);
  } else if (const auto* cancelled = std::get_if<messages::Cancel>(&message)) {
    cancel(cancelled->id, events);
  } else if (const auto* paused = std::get_if<messages::Pause>(&message)) {
    scheduler_.pause(paused->id, paused->is_paused);
  }
}

Result<void> Engine::check(const messages::Submit& submit) const {
  if (requests_.contains(submit.id)) {
    return fail(Code::kInvalidArgument, "request {} is there already", submit.id);
  }
  if (submit.prompt.empty()) return fail(Code::kInvalidArgument, "the prompt has no tokens");
  const std::size_t known = submit.prompt.size() + submit.emitted.size();
  if (submit.prompt.size() >= options_.context || known > options_.context) {
    return fail(Code::kOutOfCapacity,
                "the prompt has {} tokens, the context of {} leaves room for {} and one to answer",
                submit.prompt.size(), options_.context, options_.context - 1);
  }
  const auto vocab = static_cast<std::int64_t>(model_->config().vocab);
  for (const auto* ids : {&submit.prompt, &submit.emitted}) {
    for (const TokenId id : *ids) {
      if (id.value >= 0 && id.value < vocab) continue;
      return fail(Code::kInvalidArgument, "token id {} is outside the vocabulary of {}", id.value,
                  vocab);
    }
  }
  CICADA_TRY(engine::check(sampler_options(submit.sampling)));
  return check_penalties(submit.sampling, model_->config().vocab);
}

void Engine::submit(messages::Submit&& submit, Events& events) {
  if (auto checked = check(submit); !checked) {
    events.emplace_back(messages::Failed{
        .id = submit.id, .code = checked.error().code(), .message = checked.error().to_string()});
    return;
  }
  const RequestId id = submit.id;
  auto request = std::make_unique<Request>(std::move(submit), *pool_);
  const std::size_t room = options_.context - request->prompt_tokens;
  const std::size_t wanted = request->submit.max_tokens;
  request->end = request->prompt_tokens + (wanted == 0 ? room : std::min(wanted, room));
  if (request->ids.size() >= request->end) {
    // All of it had been emitted; only the last word was missing.
    events.emplace_back(messages::Finished{.id = id, .reason = Finish::kLength});
    return;
  }
  request->ids.reserve(request->end);
  scheduler_.submit({.id = id,
                     .prompt_tokens = request->prompt_tokens,
                     .emitted_tokens = request->ids.size() - request->prompt_tokens,
                     .tenant = request->submit.tenant,
                     .priority = request->submit.priority});
  requests_.emplace(id, std::move(request));
}

void Engine::cancel(RequestId id, Events& events) {
  if (requests_.contains(id)) finish(id, Finish::kCancelled, events);
}

// Whether another request is computing at least a page more of this one's prompt than is known.
bool Engine::waits_for_another(Request& request, std::size_t cached) {
  const std::size_t page = options_.page_tokens;
  if (request.waits_for != 0) {
    const auto other = requests_.find(request.waits_for);
    if (other != requests_.end() && other->second->has_room &&
        other->second->prefilled < request.waits_until) {
      return true;
    }
    request.waits_for = 0;
  }
  for (auto& [id, other] : requests_) {
    if (!other->has_room || other->prefilled >= other->prompt_tokens) continue;
    if (other->submit.salt != request.submit.salt) continue;
    const auto mine = request.prompt();
    const auto theirs = other->prompt();
    const auto same = static_cast<std::size_t>(
        std::mismatch(mine.begin(), mine.end(), theirs.begin(), theirs.end()).first - mine.begin());
    const std::size_t shared = same / page * page;
    if (shared < cached + page || shared <= other->prefilled) continue;
    request.waits_for = id;
    request.waits_until = shared;
    other->is_waited_for = true;
    return true;
  }
  return false;
}

KvHolder::Admission Engine::admit(RequestId id, std::size_t spare_pages) {
  Request& own = request(id);
  if (own.waits_for != 0 && waits_for_another(own, 0)) return {.room = Room::kLater};
  // The last token is always computed: its logits are what is asked for. Also looked for with it:
  // its page may be known as a whole, and is then copied.
  const std::size_t cached = std::min(
      prefixes_.extend(own.sequence, 0, own.submit.salt, own.prompt()), own.prompt_tokens - 1);
  const auto refuse = [&](Room room) -> Admission {
    own.sequence.truncate(0);
    return {.room = room};
  };
  if (waits_for_another(own, cached)) return refuse(Room::kLater);
  const std::size_t has = own.sequence.pages().size();
  const std::size_t needed = pool_->layout().pages_of(own.ids.size() + 1) - has + 1;
  if (needed + spare_pages > pool_->num_available()) {
    // Alone, the copy of a shared page may take the page of the one that is copied.
    if (spare_pages > 0 || needed > pool_->num_available() + 1) return refuse(Room::kNo);
  }
  own.sequence.expect(own.end);
  if (!own.sequence.make_writable(cached, own.ids.size()) ||
      !own.sequence.reserve(own.ids.size())) {
    return refuse(Room::kNo);
  }
  own.has_room = true;
  own.prefilled = cached;
  own.remembered = 0;
  stats_.prefix_queries_tokens += own.prompt_tokens;
  stats_.prefix_hits_tokens += cached;
  return {.room = Room::kYes, .cached_tokens = cached};
}

bool Engine::grow(RequestId id, std::size_t tokens) {
  return request(id).sequence.reserve(tokens).has_value();
}

void Engine::release(RequestId id) {
  Request& own = request(id);
  remember(own);
  own.sequence.truncate(0);
  own.has_room = false;
  own.prefilled = 0;
  own.remembered = 0;
}

void Engine::remember(Request& request) {
  const std::size_t page = options_.page_tokens;
  const std::size_t full = request.prefilled / page * page;
  if (full <= request.remembered) return;
  prefixes_.add(request.sequence, request.submit.salt, request.prompt().first(full));
  request.remembered = full;
}

bool Engine::step(Events& events) {
  const auto begin = Clock::now();
  // Who was cut off in the middle of an answer comes before the pace of the others.
  const bool is_replaying = scheduler_.is_replaying();
  const PlannedStep& plan =
      scheduler_.plan(budget_.rows(is_replaying ? 0 : scheduler_.num_answers()));
  const std::size_t to_come = scheduler_.num_to_come();
  note_plan(plan, events);
  warmer_.note_used(pool_->num_ever_used());
  if (plan.slices.empty()) return !plan.failed.empty();
  if (auto computed = compute(plan); !computed) {
    // Not the fault of one of them, as far as can be told.
    for (const Slice& slice : std::vector<Slice>(plan.slices)) {
      fail_request(slice.id, computed.error(), events);
    }
    return true;
  }
  scheduler_.complete();
  take_results(plan, events);
  const auto time = Clock::now() - begin;
  if (!is_replaying) budget_.note(plan.chunk_rows, plan.num_answers, to_come, time);
  ++stats_.steps;
  stats_.step_tokens.push_back(static_cast<std::uint32_t>(rows_.size()));
  stats_.prefill_tokens += plan.chunk_rows;
  stats_.decode_tokens += plan.num_answers;
  stats_.busy_ns += nanoseconds(time);
  return true;
}

void Engine::note_plan(const PlannedStep& plan, Events& events) {
  for (const RequestId id : plan.failed) {
    Request& own = request(id);
    const std::size_t known = own.ids.size();
    own.sequence.truncate(0);
    requests_.erase(id);
    events.emplace_back(messages::Failed{
        .id = id,
        .code = Code::kOutOfCapacity,
        .message = fmt::format("all {} KV pages of {} tokens are in use: {} tokens and one more do "
                               "not fit",
                               pool_->num_pages(), options_.page_tokens, known)});
  }
  for (const PlannedStep::Admitted& admitted : plan.admitted) {
    events.emplace_back(
        messages::Started{.id = admitted.id,
                          .cached_tokens = static_cast<std::uint32_t>(admitted.cached_tokens),
                          .is_resumed = admitted.is_resumed});
  }
}

Result<void> Engine::compute(const PlannedStep& plan) {
  rows_.clear();
  sequences_.clear();
  std::size_t num_logits = 0;
  for (const Slice& slice : plan.slices) {
    Request& own = request(slice.id);
    for (std::size_t i = slice.first; i < slice.first + slice.count; ++i) {
      rows_.push_back({.token = own.ids[i],
                       .position = static_cast<std::int64_t>(i),
                       .sequence = static_cast<std::uint32_t>(sequences_.size()),
                       .wants_logits = slice.wants_token && i + 1 == slice.first + slice.count,
                       .role = slice.is_prefill ? model::Role::kPrefill : model::Role::kDecode});
    }
    num_logits += slice.wants_token ? 1 : 0;
    sequences_.push_back(&own.sequence);
  }
  return executor_->run(rows_, sequences_,
                        logits_.as<float>().first(num_logits * model_->config().vocab));
}

void Engine::take_results(const PlannedStep& plan, Events& events) {
  std::size_t row = 0;
  for (const Slice& slice : plan.slices) {
    Request& own = request(slice.id);
    if (slice.is_prefill) {
      own.prefilled = slice.first + slice.count;
      if (own.prefilled == own.prompt_tokens || own.is_waited_for) remember(own);
    }
    if (slice.wants_token) take_token(slice, row++, events);
  }
}

void Engine::take_token(const Slice& slice, std::size_t row, Events& events) {
  Request& own = request(slice.id);
  const std::size_t vocab = model_->config().vocab;
  std::span<const float> logits = logits_.as<float>().subspan(row * vocab, vocab);
  model::Peak peak = executor_->peak(row);
  const std::span<const float> own_logits = logits;
  const model::Peak own_peak = peak;
  if (own.penalties.is_active()) {
    peak = own.penalties.apply(logits, adjusted_);
    logits = adjusted_;
  }
  const auto sampled = sampler_.sample(logits, peak, sampler_options(own.submit.sampling),
                                       own.submit.choice, own.ids.size());
  if (!sampled) {
    ++stats_.corrupted;
    return fail_request(slice.id, sampled.error(), events);
  }
  const auto& ends = own.submit.end_tokens;
  if (std::find(ends.begin(), ends.end(), *sampled) != ends.end()) {
    return finish(slice.id, Finish::kStop, events);
  }
  messages::Token token{.id = slice.id, .token = *sampled};
  if (own.submit.wants_logprobs && own_peak.is_sound()) {
    logprobs_.set(own_logits, own_peak);
    token.logprob = logprobs_.of(*sampled);
    if (own.submit.top_logprobs > 0) token.top = logprobs_.top(own.submit.top_logprobs);
  }
  events.emplace_back(std::move(token));
  own.ids.push_back(*sampled);
  own.penalties.note(*sampled);
  if (own.ids.size() == own.end) return finish(slice.id, Finish::kLength, events);
  scheduler_.add_token(slice.id);
}

void Engine::finish(RequestId id, Finish reason, Events& events) {
  scheduler_.remove(id);
  requests_.erase(id);
  events.emplace_back(messages::Finished{.id = id, .reason = reason});
}

void Engine::fail_request(RequestId id, const Error& error, Events& events) {
  scheduler_.remove(id);
  requests_.erase(id);
  events.emplace_back(
      messages::Failed{.id = id, .code = error.code(), .message = error.to_string()});
}

}  // namespace cicada::engine
