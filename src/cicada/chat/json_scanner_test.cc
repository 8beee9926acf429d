#include "cicada/chat/json_scanner.h"

#include <gtest/gtest.h>

#include <string>

#include "cicada/json/parse.h"

namespace cicada::chat {
namespace {

using Step = JsonScanner::Step;

// The last step over all of `text`; kError as soon as it comes.
Step scan(std::string_view text, std::size_t max_depth = 64) {
  JsonScanner scanner(max_depth);
  Step last = Step::kInside;
  for (const char c : text) {
    last = scanner.add(c);
    if (last == Step::kError) return last;
  }
  return last;
}

TEST(JsonScanner, WholeObjectsEndWithTheirLastByte) {
  for (const char* text :
       {"{}", "[]", " {} ", R"({"a":1})", R"({ "a" : [ 1 , -0.5e+3 , true,false , null ] })",
        R"(["\"\\\/\b\f\n\r\t\u00e9\uD83E\uDD99"])", R"([0,-0,10,1.5,1e5,1E-5,0.0])",
        R"({"":{"":[{}]}})", "[\"\x7f\u00e9\"]"}) {
    std::string_view trimmed(text);
    while (trimmed.ends_with(' ')) trimmed.remove_suffix(1);
    EXPECT_EQ(scan(trimmed), Step::kDone) << text;
  }
}

TEST(JsonScanner, WhatIsNoJsonIsAnError) {
  for (const char* text : {"1",
                           "\"a\"",
                           "x",
                           "{a}",
                           "{1:2}",
                           R"({"a"})",
                           R"({"a":})",
                           R"({"a":1,})",
                           "[1,]",
                           "[,]",
                           "[1 2]",
                           "[01]",
                           "[-]",
                           "[1.]",
                           "[.5]",
                           "[1e]",
                           "[1e+]",
                           "[+1]",
                           "[tru]",
                           "[truex]",
                           "[nul]",
                           "{]",
                           "[}",
                           R"(["\x"])",
                           R"(["\u12g4"])",
                           R"(["\uD800"])",
                           R"(["\uD800a"])",
                           R"(["\uD800\n"])",
                           R"(["\uD800\u0041"])",
                           R"(["\uDC00"])",
                           "[\"\n\"]",
                           "[\"\t\"]",
                           "{}{}",
                           "[]]",
                           R"({"a" 1})",
                           R"({"a":1 "b":2})",
                           "[NaN]",
                           "['a']"}) {
    EXPECT_EQ(scan(text), Step::kError) << text;
  }
}

TEST(JsonScanner, DepthIsBounded) {
  EXPECT_EQ(scan("[[[]]]", 3), Step::kDone);
  EXPECT_EQ(scan("[[[[]]]]", 3), Step::kError);
}

TEST(JsonScanner, PartsAreAnnounced) {
  JsonScanner scanner(8);
  std::string steps;
  for (const char c : std::string_view(R"({"a":"b","c":[1]})")) {
    const Step step = scanner.add(c);
    steps += step == Step::kKeyBegin     ? 'k'
             : step == Step::kKeyEnd     ? 'K'
             : step == Step::kValueBegin ? 'v'
             : step == Step::kDone       ? 'd'
                                         : '.';
  }
  EXPECT_EQ(steps, "vk.K.v...k.K.vv.d");
}

// Texts made by changing good ones: simdjson is the judge.
TEST(JsonScanner, AgreesWithSimdjson) {
  const std::string good = R"({"a": [1, -2.5e3, "x\u00e9\\", {"b": null}], "c": true})";
  const std::string_view bytes = "{}[]:,\"\\01-+.eEtfnu ax";
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const char byte : bytes) {
      std::string text = good;
      text[at] = byte;
      EXPECT_EQ(scan(text) == Step::kDone, json::parse(text).has_value()) << text;
      text = good.substr(0, at) + byte + good.substr(at);
      EXPECT_EQ(scan(text) == Step::kDone, json::parse(text).has_value()) << text;
    }
    std::string text = good;
    text.erase(at, 1);
    EXPECT_EQ(scan(text) == Step::kDone, json::parse(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace cicada::chat
