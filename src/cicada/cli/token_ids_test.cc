#include "cicada/cli/token_ids.h"

#include <gtest/gtest.h>

namespace cicada::cli {
namespace {

constexpr std::int32_t kVocab = 100;

std::vector<int> ids(std::string_view text) {
  const auto parsed = parse_token_ids(text, kVocab);
  EXPECT_TRUE(parsed) << parsed.error().to_string();
  std::vector<int> values;
  if (parsed) {
    for (const TokenId id : *parsed) values.push_back(id.value);
  }
  return values;
}

std::string refusal(std::string_view text) {
  const auto parsed = parse_token_ids(text, kVocab);
  if (parsed) return "";
  EXPECT_EQ(parsed.error().code(), Code::kInvalidArgument);
  return parsed.error().to_string();
}

TEST(TokenIds, BlanksOfAnyKindSeparate) {
  EXPECT_EQ(ids(" 1\t2\r\n\n99 0\f"), (std::vector{1, 2, 99, 0}));
  EXPECT_EQ(ids(""), std::vector<int>());
  EXPECT_EQ(ids(" \n"), std::vector<int>());
}

TEST(TokenIds, JsonIsAnArrayOrWhatTokenizePrints) {
  EXPECT_EQ(ids("[1, 2,99]"), (std::vector{1, 2, 99}));
  EXPECT_EQ(ids("\n{\"tokens\":[3,4]}\n"), (std::vector{3, 4}));
  EXPECT_EQ(ids("[]"), std::vector<int>());
}

TEST(TokenIds, AWordThatIsNoIdIsNamed) {
  for (const std::string_view bad :
       {"100", "-1", "1.0", "x", "1,2", "99999999999999999999", "0x1", "1e1"}) {
    const std::string message = refusal(std::string("5 ") + std::string(bad) + " 6");
    EXPECT_EQ(message,
              "token id '" + std::string(bad) + "': a whole number from 0 to 99 is needed");
  }
}

TEST(TokenIds, AJsonValueThatIsNoIdIsNamed) {
  EXPECT_EQ(refusal("[5, 100]"), "token id '100': a whole number from 0 to 99 is needed");
  for (const std::string_view bad : {"[-1]", "[1.0]", "[\"1\"]", "[null]", "[[1]]", "[1e999]",
                                     "[18446744073709551616]", "[true]"}) {
    EXPECT_NE(refusal(bad), "") << bad;
  }
}

TEST(TokenIds, BrokenJsonIsRefused) {
  for (const std::string_view bad :
       {"[1", "[1,]", "{}", "{\"tokens\":1}", "{\"tokens\":null}", "[1] 2", "[[[[[[[[1]]]]]]]]"}) {
    EXPECT_NE(refusal(bad), "") << bad;
  }
}

TEST(TokenIds, HostileWordsAreEscapedInTheMessage) {
  EXPECT_EQ(refusal("\x1b[31m"), "token id '\\x1b[31m': a whole number from 0 to 99 is needed");
}

}  // namespace
}  // namespace cicada::cli
