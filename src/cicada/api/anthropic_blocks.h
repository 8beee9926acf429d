// Anthropic's content: texts and blocks of the system prompt and of messages, and the cache marks
// on them. Threads: one thread.
#pragma once

#include <optional>
#include <string_view>

#include "cicada/api/conversation.h"
#include "cicada/api/error.h"
#include "cicada/api/fields.h"

namespace cicada::api {

// Counts the `cache_control` of a body, of which there may be four.
class CacheControls {
 public:
  // Whether the holder is marked, and then, whether for an hour.
  Parsed<std::optional<bool>> read(const Fields& holder);

 private:
  std::size_t count_ = 0;
};

// The system prompt: a string, or text blocks.
Parsed<void> read_system(json::Element system, const Path& path, CacheControls& controls,
                         Conversation& conversation);

// A message's content: a string, or the blocks that its role may have.
Parsed<void> read_content(json::Element content, const Path& path, std::string_view role,
                          CacheControls& controls, Conversation& conversation);

}  // namespace cicada::api
