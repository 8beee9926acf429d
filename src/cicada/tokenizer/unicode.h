// UTF-8 and Unicode categories as tokenizers need them: one step at a time over bytes that may be
// anything.
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cicada::tokenizer {

inline constexpr char32_t kReplacement = 0xFFFD;
// U+FFFD and U+2581 (SPM's visible space) in UTF-8.
inline constexpr std::string_view kReplacementUtf8 = "\xEF\xBF\xBD";
inline constexpr std::string_view kVisibleSpaceUtf8 = "\xE2\x96\x81";

enum class Utf8State : std::uint8_t {
  kValid,
  kInvalid,    // these bytes cannot begin a character, whatever follows
  kTruncated,  // the text ends inside a character that is valid so far
};

struct Utf8Step {
  char32_t code_point = kReplacement;  // U+FFFD unless kValid
  std::uint8_t size_bytes = 1;         // kInvalid: the maximal subpart (Unicode 15, section 3.9)
  Utf8State state = Utf8State::kInvalid;
};

// The character at `pos`, which must be inside the text.
Utf8Step utf8_step(std::string_view text, std::size_t pos);

// The classes that the pre-tokenizers' regular expressions tell apart; each character has one.
enum class CharClass : std::uint8_t {
  kLetter,       // \p{L}
  kNumber,       // \p{N}
  kSpace,        // \s: the White_Space property
  kPunctuation,  // \p{P}
  kOther,        // all else: symbols, marks, controls, unassigned, bytes that are no character
};

CharClass classify(char32_t code_point);

struct Char {
  char32_t code_point = kReplacement;
  std::uint8_t size_bytes = 1;
  CharClass char_class = CharClass::kOther;
};

// The character at `pos`, which must be inside the text; a byte that is no part of a character is
// one Char of its own, U+FFFD.
Char char_at(std::string_view text, std::size_t pos);

}  // namespace cicada::tokenizer
