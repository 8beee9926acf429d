#include "cicada/tokenizer/byte_alphabet.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>

#include "cicada/tokenizer/unicode.h"

namespace cicada::tokenizer {
namespace {

// Printable bytes of Latin-1 stand for themselves, the others for U+0100, U+0101, … in order.
constexpr bool stands_for_itself(std::uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::array<char16_t, 256> kCharacters = [] {
  std::array<char16_t, 256> characters{};
  char16_t next = 0x100;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    characters[byte] = stands_for_itself(byte) ? static_cast<char16_t>(byte) : next++;
  }
  return characters;
}();

// From character to byte; -1 outside the alphabet, which ends below U+0180.
constexpr std::array<std::int16_t, 0x180> kBytes = [] {
  std::array<std::int16_t, 0x180> bytes{};
  for (auto& byte : bytes) byte = -1;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    bytes[kCharacters[byte]] = static_cast<std::int16_t>(byte);
  }
  return bytes;
}();

std::optional<std::uint32_t> hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<std::uint32_t>(c - '0');
  if (c >= 'A' && c <= 'F') return static_cast<std::uint32_t>(c - 'A' + 10);
  if (c >= 'a' && c <= 'f') return static_cast<std::uint32_t>(c - 'a' + 10);
  return std::nullopt;
}

}  // namespace

void append_spelled(std::uint8_t byte, std::string& out) {
  const std::uint32_t character = kCharacters[byte];
  if (character < 0x80) {
    out.push_back(static_cast<char>(character));
    return;
  }
  out.push_back(static_cast<char>(0xC0U | (character >> 6)));
  out.push_back(static_cast<char>(0x80U | (character & 0x3FU)));
}

void append_spelled(std::string_view text, std::string& out) {
  for (const char byte : text) append_spelled(static_cast<std::uint8_t>(byte), out);
}

void append_unspelled(std::string_view spelled, std::string& out) {
  for (std::size_t pos = 0; pos < spelled.size();) {
    const Utf8Step step = utf8_step(spelled, pos);
    const bool known = step.state == Utf8State::kValid && step.code_point < kBytes.size() &&
                       kBytes[step.code_point] >= 0;
    if (known) {
      out.push_back(static_cast<char>(kBytes[step.code_point]));
    } else {
      out.append(spelled.substr(pos, step.size_bytes));
    }
    pos += step.size_bytes;
  }
}

std::optional<std::uint8_t> parse_byte_piece(std::string_view token_text) {
  if (token_text.size() != 6 || !token_text.starts_with("<0x") || token_text[5] != '>') {
    return std::nullopt;
  }
  const auto high = hex_digit(token_text[3]);
  const auto low = hex_digit(token_text[4]);
  if (!high || !low) return std::nullopt;
  return static_cast<std::uint8_t>(*high * 16 + *low);
}

std::string describe_missing_bytes(std::span<const std::int32_t, 256> byte_ids) {
  constexpr std::size_t kShown = 4;
  std::string shown;
  std::size_t count = 0;
  for (std::size_t byte = 0; byte < byte_ids.size(); ++byte) {
    if (byte_ids[byte] >= 0) continue;
    if (count++ < kShown) shown += fmt::format("{}0x{:02X}", shown.empty() ? "" : ", ", byte);
  }
  if (count == 0) return {};
  if (count > kShown) shown += fmt::format(" and {} more", count - kShown);
  return fmt::format("{} of 256 bytes ({})", count, shown);
}

}  // namespace cicada::tokenizer
