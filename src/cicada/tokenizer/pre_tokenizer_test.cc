#include "cicada/tokenizer/pre_tokenizer.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

namespace cicada::tokenizer {
namespace {

using Words = std::vector<std::string>;

constexpr std::array<Splitter, 6> kAll = {Splitter::kGpt2,  Splitter::kSmollm, Splitter::kLlama3,
                                          Splitter::kQwen2, Splitter::kFalcon, Splitter::kDefault};

Words split(Splitter splitter, std::string_view text) {
  std::vector<std::string_view> words;
  split_words(splitter, text, words);
  return Words(words.begin(), words.end());
}

TEST(SplitWords, Gpt2TakesOneSpaceAlongAndLowerCaseContractionsOnly) {
  EXPECT_EQ(split(Splitter::kGpt2, "Hello world, it's DON'T"),
            (Words{"Hello", " world", ",", " it", "'s", " DON", "'", "T"}));
  EXPECT_EQ(split(Splitter::kGpt2, "we'll they've I'm you're he'd can't 'lo"),
            (Words{"we", "'ll", " they", "'ve", " I", "'m", " you", "'re", " he", "'d", " can",
                   "'t", " '", "lo"}));
}

TEST(SplitWords, Gpt2LeavesTheLastSpaceOfARunToWhatFollows) {
  EXPECT_EQ(split(Splitter::kGpt2, "a   b"), (Words{"a", "  ", " b"}));
  EXPECT_EQ(split(Splitter::kGpt2, "a \n\n b "), (Words{"a", " \n\n", " b", " "}));
  EXPECT_EQ(split(Splitter::kGpt2, "a\n\nb"), (Words{"a", "\n", "\n", "b"}));
  EXPECT_EQ(split(Splitter::kGpt2, "a\u3000\u3000b  "),
            (Words{"a", "\u3000", "\u3000", "b", "  "}));
  EXPECT_EQ(split(Splitter::kGpt2, "   "), (Words{"   "}));
}

TEST(SplitWords, Gpt2KeepsNumbersTogetherAndMarksWithSymbols) {
  EXPECT_EQ(split(Splitter::kGpt2, "12345 678\u00BD e\u0301!?"),
            (Words{"12345", " 678\u00BD", " e", "\u0301!?"}));
}

TEST(SplitWords, SmollmTakesNumbersOneByOneWithoutTheSpace) {
  EXPECT_EQ(split(Splitter::kSmollm, "in 1984, x2"),
            (Words{"in", " ", "1", "9", "8", "4", ",", " x", "2"}));
  // The stretch before a number is a text of its own, so its spaces stay together.
  EXPECT_EQ(split(Splitter::kSmollm, "a   7"), (Words{"a", "   ", "7"}));
}

TEST(SplitWords, Llama3TakesNumbersInThreesFromTheLeft) {
  EXPECT_EQ(split(Splitter::kLlama3, "1234567 89\u0663"),
            (Words{"123", "456", "7", " ", "89\u0663"}));
  EXPECT_EQ(split(Splitter::kQwen2, "123 4"), (Words{"1", "2", "3", " ", "4"}));
}

TEST(SplitWords, Llama3IgnoresTheCaseOfContractions) {
  EXPECT_EQ(split(Splitter::kLlama3, "DON'T We'Ll I'M"),
            (Words{"DON", "'T", " We", "'Ll", " I", "'M"}));
}

TEST(SplitWords, Llama3JoinsOneCharacterInFrontOfLetters) {
  EXPECT_EQ(split(Splitter::kLlama3, ".hello\thi \u00A0you\nnew"),
            (Words{".hello", "\thi", " ", "\u00A0you", "\n", "new"}));
  EXPECT_EQ(split(Splitter::kQwen2, "(a) $$b"), (Words{"(a", ")", " $$", "b"}));
}

TEST(SplitWords, Llama3KeepsLineBreaksWithWhatIsBeforeThem) {
  EXPECT_EQ(split(Splitter::kLlama3, "x;\r\n\ny"), (Words{"x", ";\r\n\n", "y"}));
  EXPECT_EQ(split(Splitter::kLlama3, "x \n \n  y"), (Words{"x", " \n \n", " ", " y"}));
  EXPECT_EQ(split(Splitter::kLlama3, "x  \n"), (Words{"x", "  \n"}));
  EXPECT_EQ(split(Splitter::kLlama3, "x   5"), (Words{"x", "  ", " ", "5"}));
}

TEST(SplitWords, FalconSetsPunctuationApartAndDigitsInThrees) {
  EXPECT_EQ(split(Splitter::kFalcon, "a, b`+1234 12"),
            (Words{"a", ",", " b", "`+", "123", "4", " 12"}));
  EXPECT_EQ(split(Splitter::kFalcon, "in 1984"), (Words{"in", " ", "198", "4"}));
}

TEST(SplitWords, DefaultSetsNumbersApartAndTheBacktickNot) {
  EXPECT_EQ(split(Splitter::kDefault, "b` 12 3456"), (Words{"b", "`", " ", "12", " ", "345", "6"}));
  EXPECT_EQ(split(Splitter::kDefault, "x=y"), (Words{"x", "=", "y"}));
  EXPECT_EQ(split(Splitter::kDefault, "`,"), (Words{"`", ","}));
}

// Words must be the text, cut: nothing lost, nothing empty, for any bytes.
TEST(SplitWords, WordsJoinedAreTheText) {
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const Words pool = {"a",      "B",      "'",      "s",    "LL",   "1",         "23",
                      " ",      "  ",     "\n",     "\r",   ".",    "$",         "\t",
                      "\u00E9", "\u3000", "\u0301", "\xE6", "\xFF", "\U0001F999"};
  for (int round = 0; round < 300; ++round) {
    std::string text;
    while (text.size() < 30) text += pool[random() % pool.size()];
    for (const Splitter splitter : kAll) {
      std::string joined;
      for (const std::string& word : split(splitter, text)) {
        EXPECT_FALSE(word.empty());
        joined += word;
      }
      EXPECT_EQ(joined, text);
    }
  }
}

TEST(FindPreTokenizer, KnowsTheFamiliesAndTheirAliases) {
  for (const char* name : {"smollm", "qwen2", "llama-bpe", "llama3", "llama-v3", "gpt-2", "mpt",
                           "falcon", "default"}) {
    EXPECT_NE(find_pre_tokenizer(name), nullptr) << name;
  }
  EXPECT_EQ(find_pre_tokenizer("llama-v3")->splitter, Splitter::kLlama3);
  EXPECT_TRUE(find_pre_tokenizer("llama-bpe")->ignore_merges);
  EXPECT_EQ(find_pre_tokenizer("smol"), nullptr);
  EXPECT_EQ(find_pre_tokenizer(""), nullptr);
}

}  // namespace
}  // namespace cicada::tokenizer
