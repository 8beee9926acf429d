// An assistant's last message that stays open: the prompt ends with its content.
//
// As transformers does it (continue_final_message): the content gets a mark behind it that occurs
// nowhere else, and the rendered text is cut where the mark is. A blank follows the mark: where the
// template took that off, it trims contents, and so what stands before the mark is trimmed too.
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cicada/base/result.h"

namespace cicada::chat {

// A private-use character that none of the texts holds.
// Errors: kInvalidArgument when they hold them all.
Result<std::string> choose_end_mark(const std::vector<std::string_view>& texts);

// What is put behind the content.
inline std::string end_tag(std::string_view mark) { return std::string(mark) + ' '; }

// `rendered` up to the last mark. Errors: kInvalidArgument when there is none, because the template
// does not show the content.
Result<std::string> cut_at_mark(std::string rendered, std::string_view mark);

}  // namespace cicada::chat
