// How calls stand in an answer, syntax by syntax.
// Threads: values.
#pragma once

#include <string_view>

#include "cicada/chat/reply_parser.h"

namespace cicada::chat {

inline constexpr std::string_view kPythonTag = "<|python_tag|>";

struct CallForm {
  std::string_view open = {};   // empty: no calls are looked for
  std::string_view close = {};  // empty: nothing closes a call
  char separator = '\0';        // between calls behind one `open`; '\0': there is one call
  bool is_list = false;         // '[' follows `open`
  // At the very beginning of the answer's text a '{' opens a call too, and after a call another;
  // such a call must have arguments, since any JSON looks like it.
  bool may_be_bare = false;
};

CallForm call_form(ToolSyntax syntax);

}  // namespace cicada::chat
