// OpenAI's requests, and vLLM's and llama-server's beside them: JSON to values. `docs/api.md` lists
// every field.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/api/error.h"
#include "cicada/api/limits.h"
#include "cicada/api/request.h"
#include "cicada/base/ids.h"

namespace cicada::api {

// The body of POST /v1/chat/completions. Neighbours of one role stay apart. A `model` that is
// missing is empty: the server's own.
// Errors: 400 that names the field; 413 above limits.max_bytes.
Parsed<GenerateRequest> parse_chat_completions(std::string_view body,
                                               const json::Limits& limits = kBodyLimits);

// The body of POST /v1/completions: up to 128 prompts, and as many choices in all.
Parsed<GenerateRequest> parse_completions(std::string_view body,
                                          const json::Limits& limits = kBodyLimits);

// What POST /tokenize asks for: vLLM's {prompt} or {messages}, or llama-server's {content}.
struct TokenizeRequest {
  bool is_chat = false;
  GenerateRequest request;  // model, messages, tools and so on of a chat; prompts[0] of a text
  bool add_special_tokens = true;
  bool return_token_strings = false;
};
Parsed<TokenizeRequest> parse_tokenize(std::string_view body,
                                       const json::Limits& limits = kBodyLimits);
// {"count","max_model_len","tokens","token_strs"}; the last is null where `strings` is empty.
std::string tokenize_body(std::span<const TokenId> tokens, std::uint64_t max_model_len,
                          std::span<const std::string> strings);

struct DetokenizeRequest {
  std::string model;
  std::vector<std::int64_t> tokens;  // unchecked: the server knows the vocabulary
};
Parsed<DetokenizeRequest> parse_detokenize(std::string_view body,
                                           const json::Limits& limits = kBodyLimits);
// The text as vLLM's `prompt` and as llama-server's `content`.
std::string detokenize_body(std::string_view text);

}  // namespace cicada::api
