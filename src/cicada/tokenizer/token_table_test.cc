#include "cicada/tokenizer/token_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cicada::tokenizer {
namespace {

TEST(TokenTable, FindsEveryTokenAndNothingElse) {
  std::vector<std::string> texts;
  for (int i = 0; i < 5000; ++i) texts.push_back("token" + std::to_string(i * 7));
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  const auto table = TokenTable::build(views);
  ASSERT_TRUE(table);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(table->find(texts[i]), static_cast<std::int32_t>(i));
    EXPECT_EQ(table->find(texts[i] + "x"), -1);
  }
  EXPECT_EQ(table->find(""), -1);
  EXPECT_EQ(table->max_token_bytes(), std::string("token34993").size());
}

TEST(TokenTable, RefusesTwoTokensOfOneText) {
  const std::vector<std::string_view> texts = {"a", "b", "", "", "a"};
  const auto table = TokenTable::build(texts);
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().code(), Code::kCorrupt);
  EXPECT_EQ(table.error().message(), "tokens 0 and 4 are both 'a', each text may occur once");
}

TEST(MergeTable, TheFirstRuleOfAPairCounts) {
  MergeTable merges(3);
  merges.insert({1, 2, 10});
  merges.insert({2, 1, 11});
  merges.insert({1, 2, 12});
  EXPECT_EQ(merges.size(), 2U);
  EXPECT_EQ(merges.find(1, 2), 0);
  EXPECT_EQ(merges.at(0).result, 10);
  EXPECT_EQ(merges.find(2, 1), 1);
  EXPECT_EQ(merges.find(2, 2), -1);
  EXPECT_EQ(merges.find(-1, 2), -1);
}

}  // namespace
}  // namespace cicada::tokenizer
