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

bool is_shown(const chat::CodePoint& c) {
  const bool is_control = c.value < 0x20 || (c.value >= 0x7F && c.value < 0xA0);
  return c.size_bytes > 0 && !is_control && !is_direction_mark(c.value);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const chat::CodePoint c = chat::code_point_at(text, at);
    const std::string_view bytes = text.substr(at, std::max<std::size_t>(c.size_bytes, 1));
    if (is_shown(c)) {
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

}  // namespace cicada::cli
