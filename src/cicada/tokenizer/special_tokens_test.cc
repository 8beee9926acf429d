#include "cicada/tokenizer/special_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "cicada/tokenizer/model_for_test.h"

namespace cicada::tokenizer {
namespace {

using Parts = std::vector<std::string>;

struct Specials {
  TestModel model;
  Vocabulary vocabulary;
  SpecialTokens tokens;
};

// Control tokens and user-defined tokens of an SPM vocabulary without anything else.
std::unique_ptr<Specials> make(const Parts& control, const Parts& user_defined,
                               std::string_view name = "") {
  auto specials = std::make_unique<Specials>();
  specials->model.set_string("tokenizer.ggml.model", "llama");
  if (!name.empty()) specials->model.set_string("general.name", name);
  for (const auto& text : control) specials->model.add(text, TokenType::kControl);
  for (const auto& text : user_defined) specials->model.add(text, TokenType::kUserDefined);
  specials->model.finish();
  auto vocabulary = load_vocabulary(specials->model.metadata());
  EXPECT_TRUE(vocabulary);
  specials->vocabulary = std::move(*vocabulary);
  auto tokens = SpecialTokens::build(specials->vocabulary);
  EXPECT_TRUE(tokens);
  specials->tokens = std::move(*tokens);
  return specials;
}

// Fragments as texts; tokens in brackets.
Parts partition(const Specials& specials, std::string_view text, const EncodeOptions& options) {
  Parts parts;
  for (const Fragment& fragment : specials.tokens.partition(text, options)) {
    parts.push_back(fragment.id < 0 ? std::string(fragment.text)
                                    : fmt::format("[{}]", fragment.text));
  }
  return parts;
}

TEST(SpecialTokens, ControlTokensAreTextUnlessAskedFor) {
  const auto specials = make({"<c>"}, {"<u>"});
  EXPECT_EQ(partition(*specials, "a<c>b<u>", {}), (Parts{"a<c>b", "[<u>]"}));
  EXPECT_EQ(partition(*specials, "a<c>b<u>", {.parse_special = true}),
            (Parts{"a", "[<c>]", "b", "[<u>]"}));
  EXPECT_EQ(partition(*specials, "", {.parse_special = true}), Parts{});
}

TEST(SpecialTokens, TheLongestOfTheWholeTextIsTakenFirst) {
  const auto specials = make({}, {"abc", "cdef", "aa", "a"});
  EXPECT_EQ(partition(*specials, "abcdef", {}), (Parts{"[a]", "b", "[cdef]"}));
  EXPECT_EQ(partition(*specials, "xabcd", {}), (Parts{"x", "[abc]", "d"}));
  EXPECT_EQ(partition(*specials, "aaaaa", {}), (Parts{"[aa]", "[aa]", "[a]"}));
}

TEST(SpecialTokens, PlainRangesKeepControlTokensOut) {
  const auto specials = make({"<c>", "<c", ">>"}, {"uu"});
  const auto with = [&](std::string_view text, std::vector<ByteRange> ranges) {
    return partition(*specials, text, {.parse_special = true, .plain_ranges = ranges});
  };
  EXPECT_EQ(with("<c><c>", {{0, 3}}), (Parts{"<c>", "[<c>]"}));
  EXPECT_EQ(with("<c><c>", {{2, 3}}), (Parts{"[<c]", ">", "[<c>]"}));  // a shorter one fits
  EXPECT_EQ(with("<c><c>", {{0, 1}}), (Parts{"<c>", "[<c>]"}));
  EXPECT_EQ(with("<c><c>", {{1, 4}}), (Parts{"<c><c>"}));
  EXPECT_EQ(with("a>>>b", {{1, 2}}), (Parts{"a>", "[>>]", "b"}));
  EXPECT_EQ(with("uu<c>uu", {{0, 7}}), (Parts{"[uu]", "<c>", "[uu]"}));  // user-defined: always
}

TEST(SpecialTokens, Phi3MarksEatTheWhiteSpaceAfterThem) {
  const auto specials = make({"<|user|>", "<s>"}, {}, "Phi-3 mini");
  EXPECT_EQ(partition(*specials, "<|user|> \n hi <s> x", {.parse_special = true}),
            (Parts{"[<|user|>]", "hi ", "[<s>]", " x"}));
  const auto other = make({"<|user|>"}, {}, "Phi-2");
  EXPECT_EQ(partition(*other, "<|user|> hi", {.parse_special = true}),
            (Parts{"[<|user|>]", " hi"}));
}

TEST(SpecialTokens, RefusesAnEndlessOne) {
  TestModel model;
  model.set_string("tokenizer.ggml.model", "llama");
  model.add(std::string(SpecialTokens::kMaxBytes + 1, 'x'), TokenType::kControl);
  model.finish();
  const auto tokenizer = model.create();
  ASSERT_FALSE(tokenizer);
  EXPECT_EQ(tokenizer.error().code(), Code::kUnsupported);
  EXPECT_EQ(tokenizer.error().message(), "token 0: a special token of 1025 bytes, at most 1024");
}

// The rule, done the slow way: every token, longest first, takes its occurrences from the left out
// of what is still text.
Parts slow_partition(Parts tokens, const std::string& text) {
  std::ranges::stable_sort(tokens,
                           [](const auto& a, const auto& b) { return a.size() > b.size(); });
  Parts parts = {text};
  for (const std::string& token : tokens) {
    Parts next;
    for (std::string part : parts) {
      std::size_t at = 0;
      while (part[0] != '[' && (at = part.find(token)) != std::string::npos) {
        if (at != 0) next.push_back(part.substr(0, at));
        next.push_back(fmt::format("[{}]", token));
        part = part.substr(at + token.size());
        if (part.empty()) break;
      }
      if (!part.empty()) next.push_back(part);
    }
    parts = next;
  }
  return parts;
}

// Tokens of one length differ in their first byte's class, so that no two of a length overlap and
// the order among equals, which the rule leaves open, does not show.
TEST(SpecialTokens, AgreesWithTheSlowRule) {
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const Parts tokens = {"a", "aa", "aab", "baab", "abbab", "bbbbbb", "aaaaaaa"};
  const auto specials = make({}, tokens);
  for (int round = 0; round < 500; ++round) {
    std::string text;
    const std::size_t size = 1 + random() % 60;
    while (text.size() < size) text += "aaabbc"[random() % 6];
    EXPECT_EQ(partition(*specials, text, {}), slow_partition(tokens, text)) << text;
  }
}

}  // namespace
}  // namespace cicada::tokenizer
