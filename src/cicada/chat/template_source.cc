#include "cicada/chat/template_source.h"

#include <algorithm>
#include <cstddef>

namespace cicada::chat {
namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Where the string that opens at `pos` ends.
std::size_t end_of_string(std::string_view source, std::size_t pos) {
  const char quote = source[pos];
  for (++pos; pos < source.size() && source[pos] != quote; ++pos) {
    if (source[pos] == '\\') ++pos;
  }
  return std::min(pos + 1, source.size());
}

struct Code {
  bool has_name = false;
  std::size_t end = 0;
};

// Reads a statement or an expression from behind its opening bracket.
Code read_code(std::string_view source, std::size_t pos, std::string_view close,
               std::string_view name) {
  while (pos < source.size() && !source.substr(pos).starts_with(close)) {
    if (source[pos] == '"' || source[pos] == '\'') {
      pos = end_of_string(source, pos);
      continue;
    }
    std::size_t end = pos;
    while (end < source.size() && is_word(source[end])) ++end;
    const bool is_attribute = source[pos - 1] == '.';
    if (!is_attribute && source.substr(pos, end - pos) == name) return {true, end};
    pos = std::max(end, pos + 1);
  }
  return {false, pos};
}

}  // namespace

bool reads_variable(std::string_view source, std::string_view name) {
  std::size_t pos = source.find('{');
  while (pos < source.size()) {
    const std::string_view open = source.substr(pos, 2);
    if (open == "{#") {
      pos = source.find("#}", pos + 2);
    } else if (open == "{%" || open == "{{") {
      const Code code = read_code(source, pos + 2, open == "{%" ? "%}" : "}}", name);
      if (code.has_name) return true;
      pos = code.end;
    } else {
      ++pos;
    }
    pos = source.find('{', std::min(pos, source.size()));
  }
  return false;
}

}  // namespace cicada::chat
