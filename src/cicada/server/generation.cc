#include "cicada/server/generation.h"

#include <algorithm>
#include <utility>

#include "cicada/server/attestation.h"
#include "cicada/server/random_id.h"

namespace cicada::server {
namespace {

using chat::ReplyPiece;

std::string reply_prefix(api::Dialect dialect) {
  switch (dialect) {
    case api::Dialect::kAnthropic:
      return "msg_";
    case api::Dialect::kOpenAiChat:
      return "chatcmpl-";
    case api::Dialect::kOpenAiCompletion:
      return "cmpl-";
  }
  return "";
}

std::string call_prefix(api::Dialect dialect) {
  return dialect == api::Dialect::kAnthropic ? "toolu_" : "call_";
}

}  // namespace

void Generation::start(std::shared_ptr<Call> call, api::GenerateRequest request) {
  App& app = call->app();
  const std::size_t prompts = std::max<std::size_t>(1, request.prompts.size());
  const std::size_t places = prompts * request.n;
  if (const auto refused = app.admit(places)) return call->fail(*refused);
  call->keep_open();
  auto generation = std::make_shared<Generation>(std::move(call), std::move(request));
  generation->places_ = places;
  app.generations.insert(generation);
  generation->prepare();
}

Generation::Generation(std::shared_ptr<Call> call, api::GenerateRequest request)
    : call_(std::move(call)),
      app_(call_->app()),
      request_(std::make_shared<const api::GenerateRequest>(std::move(request))) {
  if (const auto hint = request_->buffer_hint) buffer_.set_hint(*hint);
}

Generation::~Generation() = default;

void Generation::prepare() {
  call_->exchange().on_closed(while_alive([](Generation& self) { self.close(); }));
  app_.off_loop(
      [&app = app_, request = request_] { return app.preparer.prepare(*request, unix_time_s()); },
      while_alive([](Generation& self, api::Parsed<Prepared> prepared) {
        self.on_prepared(std::move(prepared));
      }));
}

void Generation::on_prepared(api::Parsed<Prepared> prepared) {
  if (is_closed_) return;
  if (!prepared) return end_with(prepared.error());
  if (const auto error = check_lengths(*prepared)) return end_with(*error);
  std::uint64_t tokens = 0;
  for (const auto& prompt : prepared->prompts) tokens += prompt.size() * request_->n;
  if (const auto full = app_.admit_tokens(tokens)) return end_with(*full);
  prepared_ = std::move(*prepared);
  writer_ = api::make_reply_writer(
      *request_, {.id = random_id(reply_prefix(request_->dialect)),
                  .model = app_.served_name(request_->model).value_or(request_->model),
                  .created_unix_s = unix_time_s(),
                  .request_id = call_->request_id()});
  submit();
  if (!request_->is_stream) return;
  timer_ = app_.loop.after(app_.config.begin_after,
                           while_alive([](Generation& self) { self.keep_alive(); }));
}

std::optional<api::ApiError> Generation::check_lengths(const Prepared& prepared) const {
  const std::size_t context = app_.hub.hello().context;
  for (const auto& prompt : prepared.prompts) {
    if (prompt.empty()) {
      return api::make_api_error(400, "the prompt has no tokens, at least one is needed", {},
                                 "prompt");
    }
    if (prompt.size() < context) continue;
    return api::make_api_error(
        400,
        fmt::format("the prompt has {} tokens, the context of {} leaves room for {} and one to "
                    "answer",
                    prompt.size(), context, context - 1),
        "context_length_exceeded",
        request_->dialect == api::Dialect::kOpenAiCompletion ? "prompt" : "messages");
  }
  for (const auto& [id, bias] : request_->logit_bias) {
    const auto token = token_of(*app_.preparer.tokenizer, id, "logit_bias: token id", "logit_bias");
    if (!token) return token.error();
  }
  return std::nullopt;
}

messages::Submit Generation::make_submit(std::size_t choice, const std::vector<TokenId>& prompt,
                                         std::uint64_t seed) const {
  messages::Submit submit{.id = choices_[choice].id,
                          .prompt = prompt,
                          .max_tokens = request_->max_tokens.value_or(0),
                          .sampling = request_->sampling,
                          .choice = choice % request_->n,
                          .salt = call_->tenant(),
                          .tenant = call_->tenant(),
                          .priority = request_->priority,
                          .wants_logprobs = request_->wants_logprobs,
                          .top_logprobs = request_->top_logprobs};
  submit.sampling.seed = seed;
  if (!request_->has_temperature) submit.sampling.temperature = 1.0F;
  for (const auto& [id, bias] : request_->logit_bias) {
    submit.sampling.logit_bias.emplace_back(static_cast<std::int32_t>(id), bias);
  }
  submit.end_tokens = app_.preparer.tokenizer->end_tokens();
  // Not chosen, rather than chosen and not heeded: the answer goes on in words.
  for (const TokenId id : request_->ignores_end ? submit.end_tokens : std::vector<TokenId>()) {
    submit.sampling.logit_bias.emplace_back(id, -100.0F);
  }
  return submit;
}

void Generation::submit() {
  const std::uint64_t seed = request_->has_seed ? request_->sampling.seed : random_number();
  const bool goes_on = request_->dialect == api::Dialect::kOpenAiCompletion;
  choices_.reserve(places_);
  for (std::size_t i = 0; i < places_; ++i) {
    const std::size_t index = i / request_->n;
    std::optional<TokenId> previous;
    if (goes_on || request_->continues_last) previous = prepared_.prompts[index].back();
    choices_.push_back(
        {.text = {*app_.preparer.tokenizer, previous, request_->stop, prepared_.syntax},
         .prompt = index});
  }
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    Choice& choice = choices_[i];
    const auto& prompt = prepared_.prompts[choice.prompt];
    choice.id = app_.hub.next_id();
    choice.submitted = std::chrono::steady_clock::now();
    const std::uint32_t limit = request_->max_tokens.value_or(0);
    choice.is_capped = limit != 0 && prompt.size() + limit <= app_.hub.hello().context;
    app_.hub.submit(make_submit(i, prompt, seed), *this);
  }
}

std::size_t Generation::index_of(messages::RequestId id) const {
  return static_cast<std::size_t>(
      std::find_if(choices_.begin(), choices_.end(),
                   [id](const Choice& choice) { return choice.id == id; }) -
      choices_.begin());
}

api::Usage Generation::usage() const {
  api::Usage usage;
  for (const auto& prompt : prepared_.prompts) usage.prompt_tokens += prompt.size();
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    const Choice& choice = choices_[i];
    usage.completion_tokens += choice.tokens;
    usage.thinking_tokens += choice.thinking_tokens;
    if (i % request_->n == 0) usage.cache_read += choice.cached_tokens;
  }
  // What a mark asked for and was not there is in the cache now, as far as pages are full.
  const std::uint64_t page = app_.hub.hello().page_tokens;
  std::uint64_t known = usage.cache_read;
  const auto created = [&](std::uint64_t marked) {
    const std::uint64_t kept = marked / page * page;
    const std::uint64_t tokens = kept > known ? kept - known : 0;
    known += tokens;
    return tokens;
  };
  // The longer-lived marks come first in a prompt.
  usage.cache_create_1h = created(prepared_.marked_1h);
  usage.cache_create_5m = created(prepared_.marked_5m);
  attest(usage, call_->request(), app_.hub.hello());
  return usage;
}

void Generation::begin_reply() {
  if (has_begun_) return;
  has_begun_ = true;
  if (request_->is_stream) call_->begin_events();
  std::string bytes = writer_->begin(usage());
  for (std::size_t i = 0; request_->echo && i < choices_.size(); ++i) {
    bytes += writer_->text(static_cast<std::uint32_t>(i),
                           prepared_.prompt_texts[choices_[i].prompt], {});
  }
  send(bytes);
  send_held();
}

void Generation::on_started(const messages::Started& started) {
  Choice& choice = choices_[index_of(started.id)];
  // A replay finds other prefixes; the client was told of the first.
  if (std::exchange(choice.has_started, true)) return;
  choice.cached_tokens = started.cached_tokens;
  choice.started = std::chrono::steady_clock::now();
  if (request_->is_stream) begin_reply();
  flush();
}

api::TokenLogprob Generation::logprob_of(const messages::Token& token) const {
  const tokenizer::Tokenizer& tokenizer = *app_.preparer.tokenizer;
  const auto text_of = [&](TokenId id, float logprob) {
    std::string_view bytes = tokenizer.piece_bytes(id);
    if (bytes.empty() && tokenizer.contains(id)) bytes = tokenizer.token_text(id);
    return api::TokenText{.bytes = std::string(bytes), .logprob = logprob};
  };
  api::TokenLogprob entry{.token = text_of(token.token, token.logprob)};
  for (const messages::Logprob& other : token.top) {
    entry.top.push_back(text_of(other.token, other.logprob));
  }
  return entry;
}

void Generation::on_token(const messages::Token& token) {
  begin_reply();
  const std::size_t index = index_of(token.id);
  Choice& choice = choices_[index];
  ++choice.tokens;
  note_token(choice);
  std::vector<api::TokenLogprob> logprobs;
  if (request_->wants_logprobs) logprobs.push_back(logprob_of(token));
  const chat::AnswerText::Update update = choice.text.add(token.token);
  if (!update.pieces.empty() && update.pieces.front().kind == ReplyPiece::Kind::kThinking) {
    ++choice.thinking_tokens;
  }
  add_pieces(index, update.pieces, logprobs);
  if (!choice.is_finished && update.matched_stop) {
    cancel(choice);
    finish_choice(index, api::StopReason::kStopSequence, request_->stop[*update.matched_stop]);
  }
  flush();
}

void Generation::add_pieces(std::size_t index, const std::vector<ReplyPiece>& pieces,
                            std::span<const api::TokenLogprob> logprobs) {
  Choice& choice = choices_[index];
  const auto number = static_cast<std::uint32_t>(index);
  for (const ReplyPiece& piece : pieces) {
    switch (piece.kind) {
      case ReplyPiece::Kind::kText:
        send_text(writer_->text(number, piece.text, std::exchange(logprobs, {})), piece.text);
        break;
      case ReplyPiece::Kind::kThinking:
        send_text(writer_->thinking(number, piece.text), piece.text);
        break;
      case ReplyPiece::Kind::kToolCall:
        if (piece.call > 0 && request_->is_one_call_at_most) {
          cancel(choice);
          return finish_choice(index, api::StopReason::kToolCalls, {});
        }
        send(writer_->tool_call(number, piece.call, random_id(call_prefix(request_->dialect)),
                                piece.text));
        break;
      case ReplyPiece::Kind::kToolArguments:
        send(writer_->tool_arguments(number, piece.call, piece.text));
        break;
    }
  }
  if (!logprobs.empty()) send_text(writer_->text(number, {}, logprobs), {});
}

void Generation::on_finished(const messages::Finished& finished) {
  begin_reply();
  const std::size_t index = index_of(finished.id);
  Choice& choice = choices_[index];
  choice.id = 0;
  if (finished.reason == messages::Finish::kCancelled) {
    return end_with(api::make_api_error(500, "the engine cancelled the request"));
  }
  api::StopReason reason = api::StopReason::kEnd;
  if (finished.reason == messages::Finish::kLength) {
    reason = choice.is_capped ? api::StopReason::kMaxTokens : api::StopReason::kContextFull;
  }
  finish_choice(index, reason, {});
}

// Also gives what the text had held back, in which a stop string may become certain.
void Generation::finish_choice(std::size_t index, api::StopReason reason, std::string_view stop) {
  Choice& choice = choices_[index];
  choice.is_finished = true;
  const chat::AnswerText::Update rest = choice.text.finish();
  if (reason != api::StopReason::kToolCalls) add_pieces(index, rest.pieces, {});
  if (rest.matched_stop) {
    reason = api::StopReason::kStopSequence;
    stop = request_->stop[*rest.matched_stop];
  }
  if (reason == api::StopReason::kEnd && choice.text.num_calls() > 0) {
    reason = api::StopReason::kToolCalls;
  }
  stop_reason_ = reason;
  send(writer_->finish(static_cast<std::uint32_t>(index), reason, stop));
  if (is_complete()) complete();
}

// The engine does no more for it; nothing where it already does not.
void Generation::cancel(Choice& choice) { app_.hub.cancel(std::exchange(choice.id, 0)); }

bool Generation::is_complete() const {
  return !choices_.empty() && std::all_of(choices_.begin(), choices_.end(),
                                          [](const Choice& choice) { return choice.is_finished; });
}

void Generation::complete() {
  const api::Usage total = usage();
  std::string last = writer_->end(total);
  if (!request_->is_stream) {
    std::vector<http::Header> more;
    if (request_->dialect == api::Dialect::kOpenAiChat) {
      more.push_back({"x-vllm-tokens", api::token_counts(total)});
    }
    call_->respond(200, std::move(last), "application/json", std::move(more));
  } else {
    send(last);
    send_held();
    call_->exchange().end();
  }
  close();
}

void Generation::on_failed(const messages::Failed& failed) {
  choices_[index_of(failed.id)].id = 0;
  app_.telemetry.log().event(LogLevel::kError, "failed", [&](json::Writer& writer) {
    writer.field("request_id", call_->request_id())
        .field("code", code_name(failed.code))
        .field("text", failed.message);
  });
  end_with(api::to_api_error(Error(failed.code, failed.message)));
}

void Generation::end_with(const api::ApiError& error) {
  if (is_closed_) return;
  has_failed_ = true;
  if (call_->status() == 0) {
    call_->fail(error);
  } else {
    send_held();
    call_->exchange().write(writer_->error(error));
    call_->exchange().end();
  }
  close();
}

// Tells a client that waits for another engine that it is not forgotten.
void Generation::on_interrupted() {
  if (!has_begun_ || !request_->is_stream) return;
  send_held();
  call_->exchange().write(writer_->ping());
  has_written_ = true;
}

void Generation::keep_alive() {
  if (is_closed_) return;
  if (!has_begun_) {
    begin_reply();
  } else if (!has_written_) {
    send_held();
    call_->exchange().write(writer_->ping());
  }
  has_written_ = false;
  timer_ = app_.loop.after(app_.config.ping_interval,
                           while_alive([](Generation& self) { self.keep_alive(); }));
}

void Generation::send(std::string_view bytes) {
  if (request_->is_stream) buffer_.add(bytes);
}

void Generation::send_text(std::string_view bytes, std::string_view text) {
  if (request_->is_stream) buffer_.add_text(bytes, text);
}

void Generation::send_held() {
  std::string bytes = buffer_.take_all();
  if (bytes.empty()) return;
  has_written_ = true;
  call_->exchange().write(std::move(bytes));
}

// Sends on what came of a start or a token, as far as the buffer's setting lets it go.
void Generation::flush() {
  if (is_closed_ || !has_begun_ || !request_->is_stream) return;
  std::string ready = buffer_.take_ready();
  if (!ready.empty()) {
    has_written_ = true;
    call_->exchange().write(std::move(ready));
  } else if (!buffer_.is_empty() && buffer_.hint().unit == api::BufferHint::Unit::kMilliseconds &&
             flush_timer_ == nullptr) {
    flush_timer_ = app_.loop.after(std::chrono::milliseconds(buffer_.hint().amount),
                                   while_alive([](Generation& self) {
                                     if (self.is_closed_) return;
                                     self.flush_timer_ = nullptr;
                                     self.send_held();
                                   }));
  }
  const bool is_full = call_->exchange().buffered_bytes() > app_.config.max_stream_buffer_bytes;
  if (!is_full || is_paused_) return;
  pause(true);
  call_->exchange().on_drained(while_alive([](Generation& self) {
    if (self.is_paused_) self.pause(false);
  }));
}

void Generation::pause(bool is_paused) {
  is_paused_ = is_paused;
  for (const Choice& choice : choices_) app_.hub.pause(choice.id, is_paused);
}

void Generation::note_token(Choice& choice) {
  const auto now = std::chrono::steady_clock::now();
  if (!std::exchange(has_token_, true)) {
    const api::Usage so_far = usage();
    app_.telemetry.note_first_token(now - call_->arrival(), so_far.prompt_tokens,
                                    so_far.cache_read);
  }
  std::optional<std::chrono::steady_clock::duration> gap;
  if (choice.tokens > 1) {
    gap = now - choice.last_token;
  } else {
    choice.first_token = now;
  }
  choice.last_token = now;
  app_.telemetry.note_token(gap);
}

// Of several choices the times of the slowest.
metrics::FinishedRequest Generation::summary() const {
  const api::Usage total = usage();
  metrics::FinishedRequest summary{.ended = metrics::Ended::kAbort,
                                   .prompt_tokens = total.prompt_tokens,
                                   .cached_tokens = total.cache_read,
                                   .generation_tokens = total.completion_tokens,
                                   .max_tokens_param = request_->max_tokens.value_or(0),
                                   .n_param = request_->n};
  for (const Choice& choice : choices_) {
    summary.max_generation_tokens = std::max(summary.max_generation_tokens, choice.tokens);
    if (!choice.has_started) continue;
    const auto keep_longest = [](double& longest, std::chrono::steady_clock::duration time) {
      longest = std::max(longest, std::chrono::duration<double>(time).count());
    };
    keep_longest(summary.queue_seconds, choice.started - choice.submitted);
    if (choice.tokens == 0) continue;
    keep_longest(summary.prefill_seconds, choice.first_token - choice.started);
    keep_longest(summary.decode_seconds, choice.last_token - choice.first_token);
  }
  if (has_failed_) {
    summary.ended = metrics::Ended::kError;
  } else if (is_complete()) {
    const bool is_cut = stop_reason_ == api::StopReason::kMaxTokens ||
                        stop_reason_ == api::StopReason::kContextFull;
    summary.ended = is_cut ? metrics::Ended::kLength : metrics::Ended::kStop;
  }
  return summary;
}

void Generation::close() {
  if (std::exchange(is_closed_, true)) return;
  timer_ = nullptr;
  flush_timer_ = nullptr;
  for (Choice& choice : choices_) cancel(choice);
  app_.leave(places_);
  call_->note_end(summary(), !is_complete() && !has_failed_);
  // The last holder may be the set: it goes once nothing of this object is running.
  app_.loop.post([&app = app_, self = shared_from_this()] { app.generations.erase(self); });
}

}  // namespace cicada::server
