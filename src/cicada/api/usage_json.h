// What a reply cost, in the words of each API. Both carry what the attested model leaves out.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "cicada/api/reply.h"
#include "cicada/json/writer.h"

namespace cicada::api {

// Where a usage of Anthropic's stands: each place has its own fields.
enum class UsagePlace : std::uint8_t { kStart, kDelta, kWhole };

// The member "usage" of an object that has begun.
void write_anthropic_usage(json::Writer& writer, const Usage& usage, UsagePlace place);
void write_openai_usage(json::Writer& writer, const Usage& usage);

}  // namespace cicada::api
