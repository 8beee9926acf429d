// What is asked for, whichever API said it: the parsers of this module make it of JSON, the server
// acts on it.
// Threads: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cicada/base/ids.h"
#include "cicada/chat/message.h"
#include "cicada/messages/messages.h"

namespace cicada::api {

enum class Dialect : std::uint8_t { kAnthropic, kOpenAiChat, kOpenAiCompletion };

// When a stream's text is sent on (SPEC M22).
struct BufferHint {
  enum class Unit : std::uint8_t { kBytes, kToken, kWord, kMilliseconds };
  Unit unit = Unit::kToken;
  std::uint32_t amount = 0;  // bytes or milliseconds; 0: at once
};

// Everything up to and including message `message` is to be found again later.
struct CacheMark {
  std::size_t message = 0;  // index into GenerateRequest::messages
  bool is_one_hour = false;
};

// Of a completion: a text, or ids as they are.
struct CompletionPrompt {
  std::string text;
  std::vector<std::int64_t> ids;  // unchecked: the server knows the vocabulary
  bool is_ids = false;
};

struct GenerateRequest {
  Dialect dialect = Dialect::kOpenAiChat;
  std::string model;

  // A chat (Anthropic's `system` is a message of that role in front), or completions.
  std::vector<chat::Message> messages;
  std::vector<chat::Tool> tools;  // those to offer: none where the choice is "none"
  bool continues_last = false;  // the last message is the assistant's and the answer goes on in it
  bool opens_answer = true;     // the prompt ends in what opens an answer; /tokenize may go without
  std::optional<bool> is_thinking;   // nothing: as the model's template does by itself
  bool hides_thinking = false;       // Anthropic's display "omitted": blocks without their text
  bool is_one_call_at_most = false;  // parallel tool calls are not wanted
  std::vector<CacheMark> cache_marks;
  std::vector<CompletionPrompt> prompts;
  bool echo = false;

  std::optional<std::uint32_t> max_tokens;  // nothing: as the context has room
  std::vector<std::string> stop;            // not empty strings
  bool ignores_end = false;  // vLLM's `ignore_eos`: the model's end tokens do not end the answer
  // `seed` in it is meant only where `has_seed`; `logit_bias` is below, since ids are unchecked.
  messages::Sampling sampling;
  bool has_temperature = false;  // where not: the server's default
  bool has_top_p = false;
  bool has_top_k = false;
  bool has_seed = false;
  std::vector<std::pair<std::int64_t, float>> logit_bias;
  std::uint32_t n = 1;  // choices of each prompt; choice p * n + i is prompt p's i-th
  bool wants_logprobs = false;
  std::uint32_t top_logprobs = 0;

  bool is_stream = false;
  bool include_usage = false;  // OpenAI: usage in a last chunk
  std::optional<BufferHint> buffer_hint;
  std::int32_t priority = 0;  // higher goes first
  std::string user;           // who the client says is asking; not trusted
};

}  // namespace cicada::api
