#include "cicada/chat/utf8.h"

#include <array>
#include <cstdint>

namespace cicada::chat {

CodePoint code_point_at(std::string_view text, std::size_t pos) {
  const auto byte = [&](std::size_t i) -> std::uint32_t {
    return pos + i < text.size() ? static_cast<std::uint8_t>(text[pos + i]) : 0U;
  };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) return {static_cast<char32_t>(lead), 1};
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4) return {};
  std::uint32_t value = lead & (0xFFU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {};
    value = (value << 6) | (byte(i) & 0x3FU);
  }
  constexpr std::array<std::uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < kLeast[size] || value > 0x10FFFF || is_surrogate) return {};
  return {static_cast<char32_t>(value), size};
}

std::optional<std::size_t> first_invalid_utf8(std::string_view text) {
  for (std::size_t pos = 0; pos < text.size();) {
    const CodePoint c = code_point_at(text, pos);
    if (c.size_bytes == 0) return pos;
    pos += c.size_bytes;
  }
  return std::nullopt;
}

void append_utf8(std::string& text, char32_t value) {
  const auto v = static_cast<std::uint32_t>(value);
  const std::size_t size = v < 0x80 ? 1 : v < 0x800 ? 2 : v < 0x10000 ? 3 : 4;
  constexpr std::array<std::uint32_t, 5> kLead = {0, 0, 0xC0, 0xE0, 0xF0};
  text += static_cast<char>(kLead[size] | (v >> (6 * (size - 1))));
  for (std::size_t i = size - 1; i-- > 0;) {
    text += static_cast<char>(0x80U | ((v >> (6 * i)) & 0x3FU));
  }
}

}  // namespace cicada::chat
