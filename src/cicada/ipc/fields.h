// The fields of every message in the order in which they are sent: the one list that encoding and
// decoding share (docs/formats/ipc.md). Internal to ipc.
//
// Each list takes its message apart, so a field that is added to messages.h and not here does not
// compile.
#pragma once

#include <concepts>
#include <type_traits>

#include "cicada/messages/messages.h"

namespace cicada::ipc {

// A message to be read from (const) or written to.
template <typename T, typename Message>
concept Maybe = std::same_as<std::remove_const_t<T>, Message>;

template <typename Codec>
void fields(Codec& codec, Maybe<messages::Sampling> auto& message) {
  auto& [temperature, top_k, top_p, min_p, seed, presence, frequency, repetition, bias] = message;
  codec(temperature, top_k, top_p, min_p, seed, presence, frequency, repetition, bias);
}

template <typename Codec>
void fields(Codec& codec, Maybe<messages::Submit> auto& message) {
  auto& [id, prompt, emitted, max_tokens, sampling, choice, end_tokens, salt, tenant, priority,
         wants_logprobs, top_logprobs] = message;
  codec(id, prompt, emitted, max_tokens, sampling, choice, end_tokens, salt, tenant, priority,
        wants_logprobs, top_logprobs);
}

template <typename Codec>
void fields(Codec& codec, Maybe<messages::Cancel> auto& message) {
  auto& [id] = message;
  codec(id);
}

template <typename Codec>
void fields(Codec& codec, Maybe<messages::Pause> auto& message) {
  auto& [id, is_paused] = message;
  codec(id, is_paused);
}

template <typename Codec>
void fields(Codec& codec, Maybe<messages::Hello> auto& message) {
  auto& [numerics_id, architecture, rope_theta, zeroed, context, max_running, kv_pages, page_tokens,
         screen] = message;
  codec(numerics_id, architecture, rope_theta, zeroed, context, max_running, kv_pages, page_tokens,
        screen);
}

template <typename Codec>
void fields(Codec& codec, Maybe<messages::Started> auto& message) {
  auto& [id, cached_tokens, is_resumed] = message;
  codec(id, cached_tokens, is_resumed);
}

template <typename Codec>
void fields(Codec& codec, Maybe<messages::Logprob> auto& message) {
  auto& [token, logprob] = message;
  codec(token, logprob);
}

template <typename Codec>
void fields(Codec& codec, Maybe<messages::Token> auto& message) {
  auto& [id, token, logprob, top] = message;
  codec(id, token, logprob, top);
}

template <typename Codec>
void fields(Codec& codec, Maybe<messages::Finished> auto& message) {
  auto& [id, reason] = message;
  codec(id, reason);
}

template <typename Codec>
void fields(Codec& codec, Maybe<messages::Failed> auto& message) {
  auto& [id, code, text] = message;
  codec(id, code, text);
}

template <typename Codec>
void fields(Codec& codec, Maybe<messages::Stats> auto& message) {
  auto& [running, waiting, held, pages, queries, hits, preemptions, corrupted, steps,
         prefill_tokens, decode_tokens, busy_ns, step_tokens] = message;
  codec(running, waiting, held, pages, queries, hits, preemptions, corrupted, steps, prefill_tokens,
        decode_tokens, busy_ns, step_tokens);
}

}  // namespace cicada::ipc
