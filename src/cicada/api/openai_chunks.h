// What OpenAI's two streams have in common: how a chunk ends, and how a stream does.
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "cicada/api/reply.h"
#include "cicada/json/writer.h"

namespace cicada::api {

// Ends a chunk that is inside its one choice, before "finish_reason" (null where it is empty); the
// frame of all of it.
std::string end_chunk(json::Writer& writer, std::string_view finish_reason, bool include_usage);

// The chunk without choices that has the usage.
std::string usage_frame(const ReplyHead& head, std::string_view object, const Usage& usage);

// "data: [DONE]".
std::string done_frame();

}  // namespace cicada::api
