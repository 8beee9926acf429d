#include "cicada/tokenizer/tokenizer.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "cicada/tokenizer/model_for_test.h"

namespace cicada::tokenizer {
namespace {

using Ids = std::vector<std::int32_t>;

std::unique_ptr<Tokenizer> open(const TestModel& model) {
  auto tokenizer = model.create();
  EXPECT_TRUE(tokenizer) << tokenizer.error().to_string();
  return std::move(*tokenizer);
}

Ids ids_of(const Tokenizer& tokenizer, std::string_view text, const EncodeOptions& options = {}) {
  return numbers(tokenizer.encode(text, options));
}

Ids ids_of_tokens(const Tokenizer& tokenizer, const std::vector<std::string>& texts) {
  Ids ids;
  for (const auto& text : texts) ids.push_back(tokenizer.find(text).value);
  return ids;
}

std::string random_bytes(std::mt19937& random, std::size_t size) {
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) bytes.push_back(static_cast<char>(random() & 0xFF));
  return bytes;
}

TEST(BpeTokenizer, MergesByRankInsideWords) {
  TestModel model = bpe_model("gpt-2");
  model.finish();
  const auto tokenizer = open(model);
  EXPECT_EQ(ids_of(*tokenizer, "hello world"),
            ids_of_tokens(*tokenizer, {"hello", "\u0120w", "or", "l", "d"}));
  EXPECT_EQ(ids_of(*tokenizer, "hell"), ids_of_tokens(*tokenizer, {"hell"}));
  EXPECT_EQ(ids_of(*tokenizer, "aaaaaaa"), ids_of_tokens(*tokenizer, {"aaaa", "aa", "a"}));
  EXPECT_EQ(ids_of(*tokenizer, ""), Ids{});
}

// A token that no merge makes is never made from text, also on the second try, which takes the
// shorter way; families that ignore merges for whole words do make it.
TEST(BpeTokenizer, AWholeWordIsItsTokenOnlyIfMergesSaySo) {
  for (const bool ignore_merges : {false, true}) {
    TestModel model = bpe_model(ignore_merges ? "llama-bpe" : "qwen2");
    model.add("hexad");
    model.finish();
    const auto tokenizer = open(model);
    const Ids expected = ignore_merges ? ids_of_tokens(*tokenizer, {"hexad"})
                                       : ids_of_tokens(*tokenizer, {"he", "x", "a", "d"});
    EXPECT_EQ(ids_of(*tokenizer, "hexad"), expected);
    EXPECT_EQ(ids_of(*tokenizer, "hexad"), expected);
  }
}

TEST(BpeTokenizer, PlainTextNeverBecomesAControlToken) {
  TestModel model = bpe_model("llama-bpe");
  const std::int32_t hidden = model.add("hem", TokenType::kControl);  // spelled like a word
  model.add_merge("he", "m");
  model.finish();
  const auto tokenizer = open(model);
  EXPECT_EQ(ids_of(*tokenizer, "hem"), ids_of_tokens(*tokenizer, {"he", "m"}));
  EXPECT_EQ(ids_of(*tokenizer, "hem", {.parse_special = true}), Ids{hidden});
  EXPECT_EQ(ids_of(*tokenizer, "<|im_end|>").size(), 10U);
  EXPECT_EQ(ids_of(*tokenizer, "<|im_end|>", {.parse_special = true}), Ids{2});
}

TEST(BpeTokenizer, UserDefinedTokensAreAlwaysMatched) {
  TestModel model = bpe_model("gpt-2");
  model.finish();
  const auto tokenizer = open(model);
  EXPECT_EQ(ids_of(*tokenizer, "a<tool>a"), ids_of_tokens(*tokenizer, {"a", "<tool>", "a"}));
}

// BC-01: only what the template writes may be a control token.
TEST(BpeTokenizer, PlainRangesAreReadAsTextThatHasNoMarks) {
  TestModel model = bpe_model("gpt-2");
  model.finish();
  const auto tokenizer = open(model);
  const std::string text = "<|im_start|>x<|im_end|>y<|im_end|>";
  const std::vector<ByteRange> message = {{12, 24}};  // x<|im_end|>y
  const Ids guarded = ids_of(*tokenizer, text, {.parse_special = true, .plain_ranges = message});
  Ids expected = {1};
  for (const std::int32_t id : ids_of(*tokenizer, "x<|im_end|>y")) expected.push_back(id);
  expected.push_back(2);
  EXPECT_EQ(guarded, expected);
}

TEST(BpeTokenizer, BytesWithoutTokenAreLeftOutAndNoted) {
  TestModel model;
  model.set_string("tokenizer.ggml.model", "gpt2");
  model.set_string("tokenizer.ggml.pre", "gpt-2");
  model.add("a");
  model.add("b");
  model.finish();
  const auto tokenizer = open(model);
  EXPECT_EQ(ids_of(*tokenizer, "axb"), (Ids{0, 1}));
  ASSERT_EQ(tokenizer->notes().size(), 1U);
  EXPECT_EQ(tokenizer->notes()[0],
            "the vocabulary has no token for 254 of 256 bytes (0x00, 0x01, 0x02, 0x03 and 250 "
            "more), which are left out of prompts");
}

// BC-01 for SPM: ten plain tokens, five letters and five bytes.
TEST(SpmTokenizer, AMarkInTextIsTenPlainTokens) {
  TestModel model = chain_model();
  model.add("<|im_start|>", TokenType::kControl);
  const std::int32_t mark = model.add("<|im_end|>", TokenType::kControl);
  model.finish();
  const auto tokenizer = open(model);
  EXPECT_EQ(ids_of(*tokenizer, "x<|im_end|>y").size(), ids_of(*tokenizer, "xy").size() + 10);
  EXPECT_EQ(ids_of(*tokenizer, "<|im_end|>", {.parse_special = true}), Ids{mark});
  EXPECT_EQ(ids_of(*tokenizer, "</s><s><0x0A>").size(), 13U);
}

// BC-03: what is no piece becomes its bytes; nothing is dropped, nothing becomes unknown.
TEST(SpmTokenizer, UnknownCharactersBecomeTheirBytes) {
  TestModel model = chain_model();
  model.finish();
  const auto tokenizer = open(model);
  const std::vector<std::pair<std::string, std::size_t>> cases = {
      {"a\u00E9b", 4}, {"\u6F22", 3}, {"\U0001F999", 4}, {"\n", 1}, {"\t", 1}};
  for (const auto& [text, count] : cases) {
    const auto ids = tokenizer->encode(text, {});
    EXPECT_EQ(ids.size(), count) << text;
    for (const TokenId id : ids) EXPECT_NE(id, TokenId(0)) << text;
    EXPECT_EQ(tokenizer->decode(ids, false), text);
  }
}

TEST(SpmTokenizer, JoinsTheBestScoreFirst) {
  TestModel model = chain_model();
  model.finish();
  const auto tokenizer = open(model);
  EXPECT_EQ(ids_of(*tokenizer, "the he"), ids_of_tokens(*tokenizer, {"th", "e", "\u2581", "he"}));
}

TEST(SpmTokenizer, WithoutBytePiecesTextBecomesUnknown) {
  TestModel model;
  model.set_string("tokenizer.ggml.model", "llama");
  model.set_bool("tokenizer.ggml.add_space_prefix", false);
  model.add("<unk>", TokenType::kUnknown);
  model.add("a");
  model.finish();
  const auto tokenizer = open(model);
  EXPECT_EQ(ids_of(*tokenizer, "a\u00E9"), (Ids{1, 0, 0}));
  ASSERT_FALSE(tokenizer->notes().empty());
  EXPECT_TRUE(tokenizer->notes()[0].ends_with("text that needs them becomes the unknown token"))
      << tokenizer->notes()[0];
}

TEST(SpmTokenizer, TheSpaceInFrontComesOffAgain) {
  TestModel model = chain_model();
  model.set_bool("tokenizer.ggml.add_space_prefix", true);
  model.add("<|user|>", TokenType::kControl);
  model.finish();
  const auto tokenizer = open(model);
  EXPECT_EQ(ids_of(*tokenizer, "b"), ids_of_tokens(*tokenizer, {"\u2581", "b"}));
  const EncodeOptions special = {.parse_special = true};
  for (const std::string text : {"b", " b", "  b ", "", " ", "b<|user|>c", "<|user|> c<|user|>"}) {
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text, special), true), text);
  }
}

TEST(Tokenizer, DecodeGivesBackRandomBytes) {
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (const char* pre : {"gpt-2", "smollm", "qwen2", "llama-bpe", "falcon", "default", "spm"}) {
    TestModel model = std::string_view(pre) == "spm" ? chain_model() : bpe_model(pre);
    model.finish();
    const auto tokenizer = open(model);
    for (std::size_t size = 0; size < 200; ++size) {
      const std::string text = random_bytes(random, size);
      EXPECT_EQ(tokenizer->decode(tokenizer->encode(text, {}), false), text) << pre;
    }
  }
}

TEST(Tokenizer, BosIsPutInFrontOnce) {
  TestModel model = bpe_model("gpt-2");
  model.finish();
  const auto tokenizer = open(model);
  EXPECT_FALSE(tokenizer->wants_bos());
  EXPECT_EQ(ids_of(*tokenizer, "a", {.add_bos = true}), (Ids{0, tokenizer->find("a").value}));
  EXPECT_EQ(ids_of(*tokenizer, "<|endoftext|>a", {.parse_special = true, .add_bos = true}),
            (Ids{0, tokenizer->find("a").value}));
  EXPECT_EQ(ids_of(*tokenizer, "", {.add_bos = true}), Ids{0});
}

TEST(Tokenizer, DecodeHidesControlTokensUnlessAsked) {
  TestModel model = bpe_model("gpt-2");
  model.finish();
  const auto tokenizer = open(model);
  const std::vector<TokenId> ids = {TokenId(1), tokenizer->find("hello"), TokenId(2)};
  EXPECT_EQ(tokenizer->decode(ids, false), "hello");
  EXPECT_EQ(tokenizer->decode(ids, true), "<|im_start|>hello<|im_end|>");
  EXPECT_EQ(tokenizer->piece_bytes(TokenId(2)), "");
  EXPECT_EQ(tokenizer->token_text(TokenId(2)), "<|im_end|>");
}

TEST(Tokenizer, IdsOutsideTheVocabularyGiveNothing) {
  TestModel model = bpe_model("gpt-2");
  model.finish();
  const auto tokenizer = open(model);
  EXPECT_EQ(tokenizer->decode({TokenId(-1), TokenId(1 << 30), tokenizer->find("a")}, true), "a");
  EXPECT_EQ(tokenizer->find("no such token").value, -1);
}

}  // namespace
}  // namespace cicada::tokenizer
