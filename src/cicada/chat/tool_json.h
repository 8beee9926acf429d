// JSON of users that becomes part of a prompt: arguments of calls and schemas of tools.
// Threads: pure functions.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "cicada/base/result.h"
#include "cicada/chat/message.h"
#include "cicada/json/parse.h"

namespace cicada::chat {

// What becomes of a text of the conversation on its way into the template.
using TextMap = std::function<std::string(std::string_view)>;

// An object; `if_empty` is read where there is no text at all.
// Errors: kInvalidArgument, with `what` in front: not JSON, not an object, beyond the limits of
// json::Limits (1 MiB, 64 levels).
Result<json::Document> parse_object(std::string_view text, std::string_view if_empty,
                                    std::string_view what);
Result<json::Document> parse_arguments(const ToolCall& call);
// Without one: a schema that takes nothing.
Result<json::Document> parse_parameters(const Tool& tool);

// Appends a value as Python's json.dumps() writes it (", ", ": "; not more than ASCII demands), its
// strings and names of members through `map`.
void append_json(std::string& out, json::Element value, const TextMap& map);

// {"type": "function", "function": {"name", "description", "parameters"}}, in the same way.
Result<void> append_tool(std::string& out, const Tool& tool, const TextMap& map);

}  // namespace cicada::chat
