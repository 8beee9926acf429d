#include "cicada/chat/open_turn.h"

#include <set>

#include "cicada/chat/utf8.h"

namespace cicada::chat {

Result<std::string> choose_end_mark(const std::vector<std::string_view>& texts) {
  constexpr char32_t kFirst = 0x100000;  // plane 16
  constexpr char32_t kLast = 0x10FFFD;
  std::set<char32_t> used;
  for (const std::string_view text : texts) {
    for (std::size_t pos = 0; pos < text.size(); ++pos) {
      if (static_cast<unsigned char>(text[pos]) != 0xF4U) continue;
      used.insert(code_point_at(text, pos).value);
    }
  }
  // From the end: marks of control tokens are taken from the beginning (message_marks.h).
  for (char32_t c = kLast; c >= kFirst; --c) {
    if (used.contains(c)) continue;
    std::string mark;
    append_utf8(mark, c);
    return mark;
  }
  return fail(Code::kInvalidArgument,
              "messages: they hold too many different private-use characters");
}

Result<std::string> cut_at_mark(std::string rendered, std::string_view mark) {
  const std::size_t at = rendered.rfind(mark);
  if (at == std::string::npos) {
    return fail(Code::kInvalidArgument,
                "the chat template does not show the last message's content, so it cannot be "
                "continued");
  }
  const bool is_trimmed = rendered.substr(at + mark.size(), 1) != " ";
  rendered.resize(at);
  if (is_trimmed) rendered.resize(rendered.find_last_not_of(" \t\r\n\v\f") + 1);
  return rendered;
}

}  // namespace cicada::chat
