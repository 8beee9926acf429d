// A conversation as templates see it.
// Threads: values.
#pragma once

#include <string>
#include <vector>

namespace cicada::chat {

struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON text of an object
};

struct Message {
  std::string role;                       // "system", "user", "assistant", "tool", …
  std::string content;                    // UTF-8; may be empty
  std::string thinking = {};              // of an assistant's message
  std::vector<ToolCall> tool_calls = {};  // of an assistant's message
  std::string tool_call_id = {};          // of a tool's message: the call that it answers
};

struct Tool {
  std::string name;
  std::string description;
  std::string parameters;  // JSON text of a schema; empty: none
};

}  // namespace cicada::chat
