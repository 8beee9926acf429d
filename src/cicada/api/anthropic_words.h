// What both of Anthropic's writers say.
// Threads: pure functions.
#pragma once

#include <string_view>

#include "cicada/api/reply.h"
#include "cicada/json/writer.h"

namespace cicada::api {

// Clients drop thoughts without a signature. Nothing here checks one: what comes back is read as
// the client sends it.
inline constexpr std::string_view kThinkingSignature = "unsigned";

// The members stop_reason and stop_sequence of an object that has begun.
void write_stop_reason(json::Writer& writer, StopReason reason, std::string_view stop_sequence);

}  // namespace cicada::api
