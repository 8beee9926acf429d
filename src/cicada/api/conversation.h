// Gathers the messages of Anthropic's conversation, whose turns are lists of blocks, in the terms
// of templates. Threads: one thread.
#pragma once

#include <string_view>

#include "cicada/api/request.h"

namespace cicada::api {

class Conversation {
 public:
  // Fills the messages and marks of `request`, which outlives it.
  explicit Conversation(GenerateRequest& request) : request_(request) {}

  // The message that what comes next belongs to: the last one where it has this role.
  chat::Message& turn(std::string_view role);
  // A message of its own, of role "tool".
  chat::Message& tool_result(std::string_view tool_call_id);
  void add_text(std::string_view role, std::string_view text);
  // The message gathered last is to be found again later, with all before it.
  void mark(bool is_one_hour);

 private:
  GenerateRequest& request_;
};

// Puts a block's text behind what a message holds, on a line of its own.
void append_block(chat::Message& message, std::string_view text);

}  // namespace cicada::api
