#include "cicada/tokenizer/unicode.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace cicada::tokenizer {
namespace {

TEST(Utf8Step, ReadsCharactersOfEveryLength) {
  const std::string text = "a\u00E9\u6F22\U0001F999";
  const std::vector<char32_t> expected = {U'a', 0xE9, 0x6F22, 0x1F999};
  std::size_t pos = 0;
  for (const char32_t code_point : expected) {
    const Utf8Step step = utf8_step(text, pos);
    EXPECT_EQ(step.state, Utf8State::kValid);
    EXPECT_EQ(step.code_point, code_point);
    pos += step.size_bytes;
  }
  EXPECT_EQ(pos, text.size());
}

// The sequences of Unicode 15, table 3-8 and its neighbours: where each ends is what is under test.
TEST(Utf8Step, EndsInvalidSequencesAtTheMaximalSubpart) {
  const auto step = [](const std::string& bytes) { return utf8_step(bytes, 0); };
  for (const char* bytes : {"\x80x", "\xC0\x80", "\xC1\xBF", "\xF5\x80", "\xFF\xFF"}) {
    EXPECT_EQ(step(bytes).size_bytes, 1) << bytes;
    EXPECT_EQ(step(bytes).state, Utf8State::kInvalid) << bytes;
  }
  EXPECT_EQ(step("\xE0\x9F\x80").size_bytes, 1);      // overlong
  EXPECT_EQ(step("\xED\xA0\x80").size_bytes, 1);      // surrogate
  EXPECT_EQ(step("\xF4\x90\x80\x80").size_bytes, 1);  // beyond U+10FFFF
  EXPECT_EQ(step("\xF0\x8F\x80\x80").size_bytes, 1);  // overlong
  EXPECT_EQ(step("\xE6\xBCx").size_bytes, 2);
  EXPECT_EQ(step("\xF0\x9F\xA6x").size_bytes, 3);
}

TEST(Utf8Step, TellsTruncatedFromInvalid) {
  for (const std::string bytes : {"\xC3", "\xE6\xBC", "\xF0\x9F\xA6"}) {
    EXPECT_EQ(utf8_step(bytes, 0).state, Utf8State::kTruncated);
    EXPECT_EQ(utf8_step(bytes, 0).size_bytes, bytes.size());
    EXPECT_EQ(utf8_step(bytes + "x", 0).state, Utf8State::kInvalid);
  }
}

TEST(Classify, PutsEachCharacterInOneClass) {
  for (const char32_t c :
       std::u32string_view(U"aZ\u00E9\u00AA\u0416\u05D0\u0627\u0905\u0E01\u6F22\uAC00\u02B0")) {
    EXPECT_EQ(classify(c), CharClass::kLetter) << static_cast<std::uint32_t>(c);
  }
  for (const char32_t c : std::u32string_view(U"09\u00BD\u00B2\u0663\u2163\u3007\U0001D7CE")) {
    EXPECT_EQ(classify(c), CharClass::kNumber) << static_cast<std::uint32_t>(c);
  }
  for (const char32_t c :
       std::u32string_view(U" \t\n\v\f\r\u0085\u00A0\u1680\u2003\u2028\u2029\u202F\u205F\u3000")) {
    EXPECT_EQ(classify(c), CharClass::kSpace) << static_cast<std::uint32_t>(c);
  }
  for (const char32_t c : std::u32string_view(U"!_-()\u2014\u3002\uFF0C\u00BF")) {
    EXPECT_EQ(classify(c), CharClass::kPunctuation) << static_cast<std::uint32_t>(c);
  }
  for (const char32_t c : std::u32string_view(
           U"$+<=>^~|`\u0001\u001C\u200B\u0301\u20AC\uFFFD\uE000\u0378\U0001F999")) {
    EXPECT_EQ(classify(c), CharClass::kOther) << static_cast<std::uint32_t>(c);
  }
}

TEST(CharAt, MakesEveryStrayByteACharacterOfItsOwn) {
  const std::string text = "\xE6\xBCx";
  EXPECT_EQ(char_at(text, 0).size_bytes, 1);
  EXPECT_EQ(char_at(text, 0).char_class, CharClass::kOther);
  EXPECT_EQ(char_at(text, 1).size_bytes, 1);
  EXPECT_EQ(char_at(text, 2).char_class, CharClass::kLetter);
}

}  // namespace
}  // namespace cicada::tokenizer
