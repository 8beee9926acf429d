#include "cicada/json/writer.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "cicada/base/check.h"

namespace cicada::json {
namespace {

struct Utf8Piece {
  std::size_t size_bytes;
  bool is_valid;
};

// The character or the broken piece at the front of `text` (not empty), by the table of the Unicode
// standard ("Well-Formed UTF-8 Byte Sequences"): a broken piece ends before the first byte that
// cannot continue it.
Utf8Piece utf8_piece(std::string_view text) {
  const auto at = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = at(0);
  if (first < 0x80) return {1, true};
  if (first < 0xC2 || first > 0xF4) return {1, false};
  const std::size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
  if (first == 0xE0) low = 0xA0;   // overlong
  if (first == 0xED) high = 0x9F;  // surrogates
  if (first == 0xF0) low = 0x90;   // overlong
  if (first == 0xF4) high = 0x8F;  // above U+10FFFF
  for (std::size_t i = 1; i < length; ++i) {
    if (i == text.size() || at(i) < low || at(i) > high) return {i, false};
    low = 0x80;
    high = 0xBF;
  }
  return {length, true};
}

void append_escaped(std::string& out, char c) {
  constexpr std::string_view kHex = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0x20 && byte != 0x7F) {
    out += c;
    return;
  }
  out += "\\u00";
  out += kHex[byte >> 4];
  out += kHex[byte & 15];
}

void append_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const Utf8Piece piece = utf8_piece(text);
    if (!piece.is_valid) {
      out += "\xEF\xBF\xBD";
    } else if (piece.size_bytes == 1) {
      append_escaped(out, text.front());
    } else {
      out += text.substr(0, piece.size_bytes);
    }
    text.remove_prefix(piece.size_bytes);
  }
  out += '"';
}

}  // namespace

void Writer::before_value() {
  if (levels_.empty()) return;
  Level& level = levels_.back();
  if (level.is_object) {
    CICADA_CHECK(level.has_key, "a value in an object needs a key");
    level.has_key = false;
    return;
  }
  if (level.has_members) text_ += ',';
  level.has_members = true;
}

void Writer::begin(bool is_object, char bracket) {
  before_value();
  text_ += bracket;
  levels_.push_back({is_object, false, false});
}

void Writer::end(bool is_object, char bracket) {
  CICADA_CHECK(!levels_.empty() && levels_.back().is_object == is_object && !levels_.back().has_key,
               "begin and end must pair");
  levels_.pop_back();
  text_ += bracket;
}

Writer& Writer::begin_object() {
  begin(true, '{');
  return *this;
}

Writer& Writer::end_object() {
  end(true, '}');
  return *this;
}

Writer& Writer::begin_array() {
  begin(false, '[');
  return *this;
}

Writer& Writer::end_array() {
  end(false, ']');
  return *this;
}

Writer& Writer::key(std::string_view name) {
  CICADA_CHECK(!levels_.empty() && levels_.back().is_object && !levels_.back().has_key,
               "a key belongs in an object");
  Level& level = levels_.back();
  if (level.has_members) text_ += ',';
  level.has_members = true;
  level.has_key = true;
  append_string(text_, name);
  text_ += ':';
  return *this;
}

Writer& Writer::string(std::string_view text) {
  before_value();
  append_string(text_, text);
  return *this;
}

template <typename T>
Writer& Writer::digits(T value) {
  before_value();
  std::array<char, 32> buffer;  // the longest double in shortest form has 24 characters
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  text_.append(buffer.data(), end);
  return *this;
}

Writer& Writer::number(double value) { return std::isfinite(value) ? digits(value) : null(); }
Writer& Writer::number(float value) { return std::isfinite(value) ? digits(value) : null(); }
Writer& Writer::number(std::uint64_t value) { return digits(value); }
Writer& Writer::number(std::int64_t value) { return digits(value); }

Writer& Writer::boolean(bool value) {
  before_value();
  text_ += value ? "true" : "false";
  return *this;
}

Writer& Writer::null() {
  before_value();
  text_ += "null";
  return *this;
}

Writer& Writer::raw(std::string_view json) {
  before_value();
  text_ += json;
  return *this;
}

std::string Writer::take() { return std::exchange(text_, {}); }

std::string quote(std::string_view text) {
  std::string out;
  append_string(out, text);
  return out;
}

}  // namespace cicada::json
