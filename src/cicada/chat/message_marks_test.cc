#include "cicada/chat/message_marks.h"

#include <gtest/gtest.h>

#include "cicada/chat/tiny_tokenizer_for_test.h"
#include "cicada/chat/utf8.h"

namespace cicada::chat {
namespace {

TEST(Utf8, FirstInvalidByteIsFound) {
  for (const char* good : {"", "a", "\u0080", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\uffff",
                           "\U00010000", "\U0010ffff"}) {
    EXPECT_EQ(first_invalid_utf8(good), std::nullopt) << good;
  }
  for (const char* bad : {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80",
                          "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff",
                          "\xc3", "\xe2\x82", "\xf0\x9f\xa6", "\xc3x"}) {
    EXPECT_EQ(first_invalid_utf8(std::string("ab") + bad), 2U);
  }
}

TEST(Utf8, AppendIsTheInverseOfReading) {
  for (const char32_t value : {0x0U, 0x7fU, 0x80U, 0x7ffU, 0x800U, 0xffffU, 0x10000U, 0x10ffffU}) {
    std::string text;
    append_utf8(text, value);
    EXPECT_EQ(code_point_at(text, 0).value, value);
    EXPECT_EQ(code_point_at(text, 0).size_bytes, text.size());
  }
}

TEST(MessageMarks, LiteralsOfASourceAreItsTags) {
  EXPECT_EQ(tag_literals("a <b> </c> [D] <e<f> < g\n> x"),
            (std::unordered_set<std::string>{"<b>", "</c>", "[D]", "<f>", "< g\n>"}));
  EXPECT_TRUE(tag_literals("<" + std::string(64, 'x') + ">").empty());
}

MessageMarks marks_of(const TinyVocabulary& vocabulary,
                      const std::unordered_set<std::string>& literals, std::string_view text) {
  auto marks = MessageMarks::create(vocabulary.tokenizer(), literals, {text});
  EXPECT_TRUE(marks.has_value());
  return *std::move(marks);
}

TEST(MessageMarks, MarkedTextComesBackWithItsPlaces) {
  const TinyVocabulary vocabulary;
  const std::string text = "a<<b|>\u00e9<c";
  const MessageMarks marks = marks_of(vocabulary, {}, text);
  const std::string marked = marks.mark(text);
  EXPECT_EQ(marked.find('<'), std::string::npos);
  const auto back = marks.unmark("<" + marked);
  EXPECT_EQ(back.text, "<" + text);
  ASSERT_EQ(back.plain_ranges.size(), 2U);
  EXPECT_EQ(back.plain_ranges[0].begin, 2U);
  EXPECT_EQ(back.plain_ranges[0].end, 4U);
  EXPECT_EQ(back.plain_ranges[1].begin, 9U);
  EXPECT_EQ(back.plain_ranges[1].end, 10U);
}

TEST(MessageMarks, TextWithoutSuchCharactersStaysAsItIs) {
  const TinyVocabulary vocabulary;
  EXPECT_EQ(marks_of(vocabulary, {}, "").mark("the \u6f22 hen > |"), "the \u6f22 hen > |");
}

TEST(MessageMarks, LiteralsStayUnlessAControlTokenHoldsThem) {
  const TinyVocabulary vocabulary({.control = {"<a>", "x<b>y"}});
  const MessageMarks marks = marks_of(vocabulary, {"<a>", "<b>", "<c>"}, "");
  EXPECT_EQ(marks.mark("<c>"), "<c>");
  EXPECT_EQ(marks.mark("<a>").find('<'), std::string::npos);
  EXPECT_EQ(marks.mark("<b>").find('<'), std::string::npos);
  EXPECT_EQ(marks.mark("<d>").find('<'), std::string::npos);
}

TEST(MessageMarks, MarksAreNoCharactersOfTheTexts) {
  const TinyVocabulary vocabulary;
  std::string text;
  for (char32_t c = 0xF0000; c < 0xF0100; ++c) append_utf8(text, c);
  const MessageMarks marks = marks_of(vocabulary, {}, text);
  EXPECT_TRUE(marks.unmark(marks.mark(text)).plain_ranges.empty());
  EXPECT_EQ(marks.unmark(marks.mark(text)).text, text);
}

TEST(MessageMarks, RefusesTextsThatLeaveNoPrivateCharacters) {
  const TinyVocabulary vocabulary;
  std::string text;
  for (char32_t c = 0xF0000; c < 0x10FFFF; ++c) append_utf8(text, c);
  const auto marks = MessageMarks::create(vocabulary.tokenizer(), {}, {text});
  ASSERT_FALSE(marks.has_value());
  EXPECT_EQ(marks.error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace cicada::chat
