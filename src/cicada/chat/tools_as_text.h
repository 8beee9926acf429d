// Tools for models whose templates know none: told and answered in plain messages, in Hermes form.
// docs/chat-templates.md, "Tools", says what the messages hold.
// Threads: pure functions.
#pragma once

#include <span>
#include <vector>

#include "cicada/base/result.h"
#include "cicada/chat/message.h"

namespace cicada::chat {

// Whether a conversation has anything to do with tools.
bool uses_tools(std::span<const Message> messages, std::span<const Tool> tools);

// The same conversation without tools, calls and messages of tools. Precondition: checked (see
// check_conversation()).
Result<std::vector<Message>> tools_as_text(std::span<const Message> messages,
                                           std::span<const Tool> tools);

}  // namespace cicada::chat
