#include "cicada/api/conversation.h"

#include <string>

namespace cicada::api {

void append_block(chat::Message& message, std::string_view text) {
  // The assistant's blocks are pieces of one answer: text, a call, more text.
  if (!message.content.empty() && message.role != "assistant") message.content += '\n';
  message.content += text;
}

chat::Message& Conversation::turn(std::string_view role) {
  auto& messages = request_.messages;
  if (messages.empty() || messages.back().role != role) {
    messages.push_back({.role = std::string(role), .content = {}});
  }
  return messages.back();
}

chat::Message& Conversation::tool_result(std::string_view tool_call_id) {
  request_.messages.push_back({.role = "tool", .content = {}});
  request_.messages.back().tool_call_id = tool_call_id;
  return request_.messages.back();
}

void Conversation::add_text(std::string_view role, std::string_view text) {
  append_block(turn(role), text);
}

void Conversation::mark(bool is_one_hour) {
  if (request_.messages.empty()) return;
  const std::size_t message = request_.messages.size() - 1;
  auto& marks = request_.cache_marks;
  if (marks.empty() || marks.back().message != message) marks.push_back({message, false});
  marks.back().is_one_hour = marks.back().is_one_hour || is_one_hour;
}

}  // namespace cicada::api
