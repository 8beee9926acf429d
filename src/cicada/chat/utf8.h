// Where a text stops being UTF-8.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace cicada::chat {

// One code point of a text.
struct CodePoint {
  char32_t value = 0;
  std::size_t size_bytes = 0;  // 1 to 4; 0 when the bytes at the position are not UTF-8
};

// The code point that begins at `pos` (inside the text). Overlong forms, surrogates and values
// above U+10FFFF are not UTF-8.
CodePoint code_point_at(std::string_view text, std::size_t pos);

// The first byte that is not part of valid UTF-8, if any.
std::optional<std::size_t> first_invalid_utf8(std::string_view text);

// Precondition: a code point that UTF-8 can write (see above).
void append_utf8(std::string& text, char32_t value);

}  // namespace cicada::chat
