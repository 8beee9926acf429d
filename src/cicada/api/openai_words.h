// What OpenAI's writers have in common.
// Threads: values and pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "cicada/api/reply.h"
#include "cicada/json/writer.h"

namespace cicada::api {

std::string_view finish_word(StopReason reason);

// The members id, object, created and model of an object that has begun.
void write_head(json::Writer& writer, const ReplyHead& head, std::string_view object);

// The member "logprobs" as chats have it: null where there are none.
void write_chat_logprobs(json::Writer& writer, std::span<const TokenLogprob> tokens);

// The member "logprobs" as completions have it, with the offsets of tokens in a choice's text.
class CompletionLogprobs {
 public:
  // Whether alternatives are shown.
  explicit CompletionLogprobs(bool has_top) : has_top_(has_top) {}
  void write(json::Writer& writer, std::span<const TokenLogprob> tokens);

 private:
  std::uint64_t next_offset(std::string_view bytes);

  bool has_top_;
  std::uint64_t num_characters_ = 0;  // that have begun
};

}  // namespace cicada::api
