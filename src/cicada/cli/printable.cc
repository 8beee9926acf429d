#include "cicada/cli/printable.h"

#include <fmt/format.h>

#include <algorithm>

#include "cicada/chat/utf8.h"

namespace cicada::cli {
namespace {

// Unicode's Bidi_Control and the line and paragraph separators.
bool is_direction_mark(char32_t c) {
  return c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069);
}

bool is_control(char32_t c) { return c < 0x20 || (c >= 0x7F && c < 0xA0); }

template <class IsSpelled>
std::string spell(std::string_view text, IsSpelled is_spelled) {
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const chat::CodePoint c = chat::code_point_at(text, at);
    const std::string_view bytes = text.substr(at, std::max<std::size_t>(c.size_bytes, 1));
    if (c.size_bytes > 0 && !is_spelled(c.value)) {
      shown += bytes;
    } else {
      for (const char byte : bytes) {
        shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
      }
    }
    at += bytes.size();
  }
  return shown;
}

}  // namespace

std::string printable(std::string_view text) {
  return spell(text, [](char32_t c) { return is_control(c) || is_direction_mark(c); });
}

std::string printable_lines(std::string_view text) {
  return spell(text, [](char32_t c) { return is_control(c) && c != '\n' && c != '\t'; });
}

}  // namespace cicada::cli
