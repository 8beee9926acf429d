#include "cicada/tokenizer/unicode.h"

#include <utf8proc.h>

#include <array>

namespace cicada::tokenizer {
namespace {

// What may follow a lead byte (Unicode 15, table 3-7): how many bytes the sequence has and the
// range of its second one, which excludes overlong forms, surrogates and values beyond U+10FFFF.
struct Lead {
  std::uint8_t size_bytes = 0;  // 0: not a lead byte
  std::uint8_t second_min = 0x80;
  std::uint8_t second_max = 0xBF;
};

constexpr Lead lead_of(std::uint8_t byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xC2) return {0};
  if (byte < 0xE0) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

CharClass classify_any(char32_t code_point) {
  if (is_space(code_point)) return CharClass::kSpace;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return CharClass::kLetter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return CharClass::kNumber;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return CharClass::kPunctuation;
    default:
      return CharClass::kOther;
  }
}

// ASCII is most of most texts, and the library's look-up is a call through two tables.
const std::array<CharClass, 128>& ascii_classes() {
  static const std::array<CharClass, 128> kClasses = [] {
    std::array<CharClass, 128> all{};
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = classify_any(static_cast<char32_t>(i));
    return all;
  }();
  return kClasses;
}

}  // namespace

Utf8Step utf8_step(std::string_view text, std::size_t pos) {
  const auto first = static_cast<std::uint8_t>(text[pos]);
  const Lead lead = lead_of(first);
  if (lead.size_bytes == 1) return {first, 1, Utf8State::kValid};
  if (lead.size_bytes == 0) return {kReplacement, 1, Utf8State::kInvalid};
  char32_t code_point = first & (0x7FU >> lead.size_bytes);
  for (std::uint8_t i = 1; i < lead.size_bytes; ++i) {
    if (pos + i == text.size()) return {kReplacement, i, Utf8State::kTruncated};
    const auto byte = static_cast<std::uint8_t>(text[pos + i]);
    const std::uint8_t min = i == 1 ? lead.second_min : 0x80;
    const std::uint8_t max = i == 1 ? lead.second_max : 0xBF;
    if (byte < min || byte > max) return {kReplacement, i, Utf8State::kInvalid};
    code_point = (code_point << 6) | (byte & 0x3FU);
  }
  return {code_point, lead.size_bytes, Utf8State::kValid};
}

CharClass classify(char32_t code_point) {
  return code_point < 128 ? ascii_classes()[code_point] : classify_any(code_point);
}

Char char_at(std::string_view text, std::size_t pos) {
  const Utf8Step step = utf8_step(text, pos);
  if (step.state != Utf8State::kValid) return {};
  return {step.code_point, step.size_bytes, classify(step.code_point)};
}

}  // namespace cicada::tokenizer
