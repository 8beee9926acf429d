// The fields that several endpoints share, read into a GenerateRequest.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "cicada/api/error.h"
#include "cicada/api/fields.h"
#include "cicada/api/request.h"
#include "cicada/json/parse.h"

namespace cicada::api {

inline constexpr std::size_t kMaxNameBytes = 256;     // of models, tools, ids
inline constexpr std::size_t kMaxMessages = 100'000;  // of one conversation
inline constexpr std::size_t kMaxTools = 1000;

// The body as a document: 413 where it is larger than the limit, 400 where it is not JSON.
Parsed<json::Document> parse_body(std::string_view body, const json::Limits& limits);

// temperature, top_p, top_k, min_p, the penalties, seed, logit_bias. Both APIs take all of them:
// the vendors' clients send what theirs does not know as extra fields.
Parsed<void> read_sampling(const Fields& body, GenerateRequest& request);

// A string, or a list of at most `max_count`: none of them empty.
Parsed<void> read_stop(const Fields& body, std::string_view key, std::size_t max_count,
                       GenerateRequest& request);

// stream, buffer_hint: bytes, "token", "word", "20ms".
Parsed<void> read_stream(const Fields& body, GenerateRequest& request);

// A count of tokens, at least 1.
Parsed<std::optional<std::uint32_t>> read_max_tokens(const Fields& body, std::string_view key);

// Refuses a field that is there and asks for something: not false, 0, "" or [].
Parsed<void> refuse_if_asked(const Fields& body, std::string_view key, std::string_view sentence);

}  // namespace cicada::api
