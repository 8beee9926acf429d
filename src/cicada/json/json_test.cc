#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <limits>

#include "cicada/json/parse.h"
#include "cicada/json/writer.h"

namespace cicada::json {
namespace {

testing::AssertionResult has(const std::string& text, std::string_view part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << '"' << text << "\" does not contain \"" << part << '"';
}

template <typename T>
std::string message(const Result<T>& result) {
  return result ? std::string() : result.error().to_string();
}

TEST(JsonParse, TypedValues) {
  auto document =
      parse(R"({"n": 18446744073709551615, "x": 1, "y": 2.5, "t": true, "s": "é", "z": null})");
  ASSERT_TRUE(document);
  const Document moved = std::move(*document);
  const auto at = [&moved](std::string_view key) { return **find(moved.root(), key, "doc"); };
  EXPECT_EQ(as_u64(at("n"), "n").value(), UINT64_MAX);
  EXPECT_EQ(as_f64(at("x"), "x").value(), 1.0);
  EXPECT_EQ(as_f64(at("y"), "y").value(), 2.5);
  EXPECT_EQ(as_bool(at("t"), "t").value(), true);
  EXPECT_EQ(as_string(at("s"), "s").value(), "é");
  EXPECT_FALSE(find(moved.root(), "z", "doc").value().has_value());
  EXPECT_FALSE(find(moved.root(), "missing", "doc").value().has_value());
  EXPECT_EQ(message(as_u64(at("y"), "y")), "y: is a float, an unsigned integer is needed");
  EXPECT_EQ(message(as_string(at("x"), "x")), "x: is an integer, a string is needed");
  EXPECT_EQ(message(find(at("s"), "k", "s")), "s: is a string, an object is needed");
}

TEST(JsonParse, FaultsAreRefused) {
  for (const std::string_view text : {"", "{", "[1,]", "{\"a\":}", "nul", "[1] x", "\"\xff\""}) {
    const auto document = parse(text);
    ASSERT_FALSE(document) << text;
    EXPECT_EQ(document.error().code(), Code::kInvalidArgument);
    EXPECT_TRUE(has(document.error().message(), "not valid JSON"));
  }
}

TEST(JsonParse, DepthAndSizeAreBounded) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + '1' + std::string(depth, ']');
  };
  const Limits limits{.max_bytes = 1000, .max_depth = 10};
  EXPECT_EQ(message(parse(nested(10), limits)), "");
  EXPECT_EQ(message(parse(nested(11), limits)), "JSON nested deeper than 10 levels");
  EXPECT_EQ(message(parse(nested(501), limits)), "JSON of 1003 bytes, at most 1000");
  EXPECT_TRUE(has(message(parse(nested(400000))), "deeper than 64"));
}

TEST(JsonWriter, NestedStructure) {
  Writer writer;
  writer.begin_object().field("a", 1).key("b").begin_array();
  writer.number(2U).string("x").begin_object().end_object().begin_array().end_array().null();
  writer.end_array().field("c", true).field("d", "y").end_object();
  EXPECT_EQ(writer.take(), R"({"a":1,"b":[2,"x",{},[],null],"c":true,"d":"y"})");
}

TEST(JsonWriter, RawValuesStandAmongOthers) {
  Writer writer;
  writer.begin_object().key("a").raw(R"({"x":[1]})").key("b").begin_array();
  writer.raw("1").raw("\"s\"").end_array().end_object();
  EXPECT_EQ(writer.take(), R"({"a":{"x":[1]},"b":[1,"s"]})");
}

TEST(JsonWriter, TakeGivesThePiecesOfOneText) {
  Writer writer;
  writer.begin_array().number(1);
  EXPECT_EQ(writer.take(), "[1");
  writer.number(2).end_array();
  EXPECT_EQ(writer.take(), ",2]");
}

TEST(JsonWriter, NumbersReadBackAsThemselves) {
  for (const double value : {0.1, 1.0 / 3.0, DBL_MAX, DBL_MIN, 5e-324, -0.0, 1e22, 123456789.0}) {
    Writer writer;
    writer.begin_array().number(value).end_array();
    const auto document = parse(writer.take());
    ASSERT_TRUE(document);
    const double read = as_f64(document->root().at(0).value(), "x").value();
    EXPECT_EQ(read, value);
  }
  Writer writer;
  writer.begin_array().number(0.1F).number(INT64_MIN).number(UINT64_MAX).end_array();
  EXPECT_EQ(writer.take(), "[0.1,-9223372036854775808,18446744073709551615]");
}

TEST(JsonWriter, NotFiniteIsNull) {
  Writer writer;
  writer.begin_array().number(std::nan("")).number(HUGE_VAL).number(-HUGE_VALF).end_array();
  EXPECT_EQ(writer.take(), "[null,null,null]");
}

TEST(JsonWriter, StringsAreEscaped) {
  EXPECT_EQ(quote("a\"\\\n\r\t\b\x1f\x7f/é😀"), "\"a\\\"\\\\\\n\\r\\t\\u0008\\u001f\\u007f/é😀\"");
  EXPECT_EQ(quote(std::string_view("\0", 1)), "\"\\u0000\"");
}

TEST(JsonWriter, BrokenUtf8BecomesReplacementCharacters) {
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(quote("\xff"), '"' + r + '"');
  EXPECT_EQ(quote("a\x80z"), "\"a" + r + "z\"");
  EXPECT_EQ(quote("\xe2\x82"), '"' + r + '"');                      // cut character: one piece
  EXPECT_EQ(quote("\xe2\x82x"), '"' + r + "x\"");                   //
  EXPECT_EQ(quote("\xc0\xaf"), '"' + r + r + '"');                  // overlong
  EXPECT_EQ(quote("\xed\xa0\x80"), '"' + r + r + r + '"');          // surrogate
  EXPECT_EQ(quote("\xf4\x90\x80\x80"), '"' + r + r + r + r + '"');  // above U+10FFFF
}

TEST(JsonWriter, EveryByteStringIsValidJson) {
  for (int high = 0; high < 256; ++high) {
    std::string text;
    for (int low = 0; low < 256; ++low) {
      text += static_cast<char>(high);
      text += static_cast<char>(low);
    }
    EXPECT_EQ(message(parse(quote(text))), "") << high;
  }
}

TEST(JsonWriterDeathTest, ValueInAnObjectNeedsAKey) {
  Writer writer;
  writer.begin_object();
  EXPECT_DEATH(writer.number(1), "needs a key");
}

}  // namespace
}  // namespace cicada::json
