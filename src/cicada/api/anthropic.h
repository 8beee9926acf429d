// Anthropic's requests: JSON to values. `docs/api.md` lists every field.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cicada/api/error.h"
#include "cicada/api/limits.h"
#include "cicada/api/request.h"

namespace cicada::api {

// The body of POST /v1/messages.
//
// `system` becomes messages of that role in front; tool results become messages of role "tool";
// neighbours of one role are joined (with a newline; the assistant's without, since it may be an
// answer cut in two). A last message of the assistant is one to go on in.
// Errors: 400 that names the field; 413 above limits.max_bytes.
Parsed<GenerateRequest> parse_messages(std::string_view body,
                                       const json::Limits& limits = kBodyLimits);

// The body of POST /v1/messages/count_tokens: the same, less max_tokens.
Parsed<GenerateRequest> parse_count_tokens(std::string_view body,
                                           const json::Limits& limits = kBodyLimits);
std::string count_tokens_body(std::uint64_t input_tokens);

}  // namespace cicada::api
