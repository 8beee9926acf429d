// What OpenAI's endpoints have in common.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "cicada/api/error.h"
#include "cicada/api/fields.h"
#include "cicada/api/request.h"

namespace cicada::api {

inline constexpr std::int64_t kMaxChoices = 128;  // of all prompts of a request

// model, n, stop, sampling, stream, user, priority and so on: all but the prompt and the logprobs.
// Refuses what cannot be met.
Parsed<void> read_openai_common(const Fields& body, GenerateRequest& request);

// messages, tools, tool_choice, chat_template_kwargs, continue_final_message.
Parsed<void> read_openai_chat(const Fields& body, GenerateRequest& request);

// Numbers of tokens, unchecked.
Parsed<std::vector<std::int64_t>> read_token_ids(simdjson::dom::array list, const Path& path);

}  // namespace cicada::api
