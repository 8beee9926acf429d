#include "cicada/server/stream_buffer.h"

#include <gtest/gtest.h>

namespace cicada::server {
namespace {

using Unit = api::BufferHint::Unit;

StreamBuffer buffer_of(Unit unit, std::uint32_t amount = 0) {
  StreamBuffer buffer;
  buffer.set_hint({.unit = unit, .amount = amount});
  return buffer;
}

TEST(StreamBuffer, HoldsNothingBackUnlessAsked) {
  for (const auto& [unit, amount] : {std::pair{Unit::kToken, 0U}, {Unit::kBytes, 0U}}) {
    StreamBuffer buffer = buffer_of(unit, amount);
    buffer.add_text("<a>", "a");
    EXPECT_EQ(buffer.take_ready(), "<a>");
    EXPECT_TRUE(buffer.is_empty());
  }
}

TEST(StreamBuffer, WaitsForSoManyBytes) {
  StreamBuffer buffer = buffer_of(Unit::kBytes, 6);
  buffer.add_text("<ab>", "ab");
  EXPECT_EQ(buffer.take_ready(), "");
  buffer.add_text("<c>", "c");
  EXPECT_EQ(buffer.take_ready(), "<ab><c>");
}

TEST(StreamBuffer, AWordEndsWithABlankBehindItOrInFrontOfTheNext) {
  StreamBuffer buffer = buffer_of(Unit::kWord);
  buffer.add_text("<on>", "on");
  EXPECT_EQ(buffer.take_ready(), "");
  buffer.add_text("<e >", "e ");
  EXPECT_EQ(buffer.take_ready(), "<on><e >");
  buffer.add_text("<two>", "two");
  buffer.add_text("< th>", " th");
  EXPECT_EQ(buffer.take_ready(), "<two>");
  buffer.add_text("<ree>", "ree");
  EXPECT_EQ(buffer.take_ready(), "");
  buffer.add_text("<\nfour\n>", "\nfour\n");
  EXPECT_EQ(buffer.take_ready(), "< th><ree><\nfour\n>");
}

TEST(StreamBuffer, WhatIsNoTextEndsAWord) {
  StreamBuffer buffer = buffer_of(Unit::kWord);
  buffer.add_text("<one>", "one");
  buffer.add_text("<logprobs>", "");
  EXPECT_EQ(buffer.take_ready(), "");
  buffer.add("<call>");
  EXPECT_EQ(buffer.take_ready(), "<one><logprobs><call>");
}

TEST(StreamBuffer, TakingAllForgetsOpenWords) {
  StreamBuffer buffer = buffer_of(Unit::kWord);
  buffer.add_text("<one >", "one ");
  EXPECT_EQ(buffer.take_all(), "<one >");
  buffer.add_text("<two>", "two");
  EXPECT_EQ(buffer.take_ready(), "");
}

TEST(StreamBuffer, HeadersAreANumberOfBytes) {
  for (const std::string_view header : {"0", "1024", "1048576"}) {
    const auto hint = parse_stream_buffer(header);
    ASSERT_TRUE(hint) << header;
    EXPECT_EQ(hint->unit, Unit::kBytes);
    EXPECT_EQ(std::to_string(hint->amount), header);
  }
  for (const std::string_view header : {"", "-1", "1.5", "x", "1 ", "1048577", "99999999999"}) {
    EXPECT_FALSE(parse_stream_buffer(header)) << header;
  }
}

}  // namespace
}  // namespace cicada::server
