// Replies of both APIs, whole or streamed, behind one interface: the server says what happened, and
// gets the bytes to send.
//
// For a stream, every call gives the frames to send now (perhaps none). For a whole reply the calls
// give nothing, and end() gives the body. Order: begin; for each choice any of text, thinking, tool
// calls, then finish; end. After error() nothing follows.
// Threads: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/api/error.h"
#include "cicada/api/request.h"

namespace cicada::api {

// What the attested model leaves out (SPEC M21).
struct ArchitectureDetails {
  double rope_base_freq = 0;
  std::vector<std::string> zeroed_layers;
};

struct Usage {
  std::uint64_t prompt_tokens = 0;    // the whole prompt
  std::uint64_t cache_read = 0;       // of it, found in the cache
  std::uint64_t cache_create_5m = 0;  // of it, put into the cache because a mark asked for it
  std::uint64_t cache_create_1h = 0;
  std::uint64_t completion_tokens = 0;         // of all choices
  std::uint64_t thinking_tokens = 0;           // of these
  std::string layer_zeroed;                    // names joined by commas; empty: nothing is left out
  std::optional<ArchitectureDetails> details;  // where the client asked for them
};

enum class StopReason : std::uint8_t {
  kEnd,           // the model ended it
  kStopSequence,  // one of the request's matched
  kMaxTokens,     // the limit asked for
  kContextFull,   // no room is left in the context
  kToolCalls,     // it calls tools and waits for their results
};

struct TokenText {
  std::string bytes;  // may be part of a character
  float logprob = 0;
};

// A token of the answer with its alternatives, as `logprobs` show it.
struct TokenLogprob {
  TokenText token;
  std::vector<TokenText> top;  // descending
};

struct ReplyHead {
  std::string id;  // "msg_…", "chatcmpl-…", "cmpl-…"
  std::string model;
  std::int64_t created_unix_s = 0;
  std::string request_id;
};

class ReplyWriter {
 public:
  virtual ~ReplyWriter() = default;

  virtual std::string begin(const Usage& usage) = 0;
  // `text` is whole characters; may be empty with logprobs (in the middle of a character).
  virtual std::string text(std::uint32_t choice, std::string_view text,
                           std::span<const TokenLogprob> logprobs) = 0;
  virtual std::string thinking(std::uint32_t choice, std::string_view text) = 0;
  // Calls of a choice are numbered from 0 and do not overlap.
  virtual std::string tool_call(std::uint32_t choice, std::uint32_t call, std::string_view id,
                                std::string_view name) = 0;
  virtual std::string tool_arguments(std::uint32_t choice, std::uint32_t call,
                                     std::string_view json_piece) = 0;
  // `stop_sequence`: the one that matched, with kStopSequence.
  virtual std::string finish(std::uint32_t choice, StopReason reason,
                             std::string_view stop_sequence) = 0;
  virtual std::string end(const Usage& usage) = 0;

  // Keeps a waiting client awake; nothing for a whole reply.
  virtual std::string ping() = 0;
  // Ends a stream that has begun. Not for whole replies: those get a status and error_body().
  virtual std::string error(const ApiError& error) = 0;
};

// The writer for a request: streamed or whole, in its dialect.
std::unique_ptr<ReplyWriter> make_reply_writer(const GenerateRequest& request,
                                               const ReplyHead& head);

// The value of the header x-vllm-tokens:
// {"prompt_tokens":…,"completion_tokens":…,"total_tokens":…}
std::string token_counts(const Usage& usage);

}  // namespace cicada::api
