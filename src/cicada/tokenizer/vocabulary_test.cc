#include "cicada/tokenizer/vocabulary.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "cicada/formats/gguf_test_builder.h"
#include "cicada/tokenizer/model_for_test.h"

namespace cicada::tokenizer {
namespace {

struct BadFile {
  std::string_view key_or_word;  // must be in the message
  Code code = Code::kCorrupt;
  std::function<void(TestModel&)> spoil;  // after finish()
};

// Each mistake is one sentence that names the key or token, and no tokenizer.
TEST(Vocabulary, RefusesBadFilesByName) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const std::vector<BadFile> cases = {
      {"tokenizer.ggml.model: 'bert'", Code::kUnsupported,
       [](TestModel& m) { m.set_string("tokenizer.ggml.model", "bert"); }},
      {"tokenizer.ggml.model: is a u32", Code::kCorrupt,
       [](TestModel& m) { m.set_u32("tokenizer.ggml.model", 1); }},
      {"known are default, gpt-2", Code::kUnsupported,
       [](TestModel& m) { m.set_string("tokenizer.ggml.pre", "no-such"); }},
      {"tokenizer.ggml.tokens: 0 tokens", Code::kCorrupt,
       [](TestModel& m) { m.set_strings("tokenizer.ggml.tokens", {}); }},
      {"tokenizer.ggml.tokens: is an array of i32", Code::kCorrupt,
       [](TestModel& m) {
         m.set_ints("tokenizer.ggml.tokens", {1, 2});
       }},
      {"tokens 0 and 2 are both 'a'", Code::kCorrupt,
       [](TestModel& m) {
         m.set_strings("tokenizer.ggml.tokens", {"a", "b", "a"});
       }},
      {"tokenizer.ggml.token_type: 2 entries", Code::kCorrupt,
       [](TestModel& m) {
         m.set_ints("tokenizer.ggml.token_type", {1, 1});
       }},
      {"tokenizer.ggml.token_type: is a string", Code::kCorrupt,
       [](TestModel& m) { m.set_string("tokenizer.ggml.token_type", "normal"); }},
      {"token 1 has type 7", Code::kCorrupt,
       [](TestModel& m) {
         m.set_strings("tokenizer.ggml.tokens", {"a", "b"});
         m.set_ints("tokenizer.ggml.token_type", {1, 7});
       }},
      {"token 0: 'a' is of type byte", Code::kCorrupt,
       [](TestModel& m) {
         m.set_strings("tokenizer.ggml.tokens", {"a"});
         m.set_ints("tokenizer.ggml.token_type", {6});
       }},
      {"tokenizer.ggml.scores: 3 entries", Code::kCorrupt,
       [](TestModel& m) {
         m.set_floats("tokenizer.ggml.scores", {0, 0, 0});
       }},
      {"tokenizer.ggml.scores: token 0 has no number", Code::kCorrupt,
       [=](TestModel& m) {
         m.set_strings("tokenizer.ggml.tokens", {"a"});
         m.set_ints("tokenizer.ggml.token_type", {1});
         m.set_floats("tokenizer.ggml.scores", {kNaN});
       }},
      {"tokenizer.ggml.bos_token_id: 99999", Code::kCorrupt,
       [](TestModel& m) { m.set_u32("tokenizer.ggml.bos_token_id", 99999); }},
      {"tokenizer.ggml.eot_token_id: 99999", Code::kCorrupt,
       [](TestModel& m) { m.set_u32("tokenizer.ggml.eot_token_id", 99999); }},
      {"tokenizer.ggml.bos_token_id is missing", Code::kCorrupt,
       [](TestModel& m) {
         m.set_u32("tokenizer.ggml.bos_token_id", std::numeric_limits<std::uint32_t>::max());
         m.set_bool("tokenizer.ggml.add_bos_token", true);
       }},
      {"tokenizer.ggml.merges: is an array of i32", Code::kCorrupt,
       [](TestModel& m) { m.set_ints("tokenizer.ggml.merges", {1}); }},
  };
  for (const BadFile& bad : cases) {
    TestModel model = bpe_model("gpt-2");
    model.finish();
    bad.spoil(model);
    const auto tokenizer = model.create();
    ASSERT_FALSE(tokenizer) << bad.key_or_word;
    EXPECT_EQ(tokenizer.error().code(), bad.code) << bad.key_or_word;
    EXPECT_NE(tokenizer.error().to_string().find(bad.key_or_word), std::string::npos)
        << tokenizer.error().to_string();
  }
}

TEST(Vocabulary, AFileWithoutTokenizerSaysSo) {
  const auto tokenizer = Tokenizer::create(formats::Metadata());
  ASSERT_FALSE(tokenizer);
  EXPECT_EQ(tokenizer.error().code(), Code::kUnsupported);
}

TEST(Vocabulary, ErrorsOfAFileNameIt) {
  formats::GgufBuilder builder;
  builder.key_string("tokenizer.ggml.model", "bert");
  const auto file = formats::open_bytes(builder.build());
  ASSERT_TRUE(file);
  const auto tokenizer = Tokenizer::create(*file);
  ASSERT_FALSE(tokenizer);
  const std::string message = tokenizer.error().to_string();
  EXPECT_TRUE(formats::has(message, file->path() + ": key tokenizer.ggml.model")) << message;
  EXPECT_EQ(message.find(file->path(), 1), std::string::npos) << "named twice: " << message;
}

TEST(Vocabulary, MergesOfUnknownTokensAreIgnoredAndCounted) {
  TestModel model = bpe_model("gpt-2");
  model.add_merge("he", "zz");  // no token "zz"
  model.add_merge("x", "y");    // no token "xy"
  model.add_merge("onlyone", "");
  model.finish();
  const auto tokenizer = model.create();
  ASSERT_TRUE(tokenizer);
  ASSERT_EQ((*tokenizer)->notes().size(), 1U);
  EXPECT_NE((*tokenizer)->notes()[0].find("3 of 21 merges"), std::string::npos)
      << (*tokenizer)->notes()[0];
}

TEST(Vocabulary, AMissingPreTokenizerIsNotedAndDefault) {
  TestModel model = bpe_model("");
  model.finish();
  TestModel named = bpe_model("default");
  named.finish();
  const auto tokenizer = model.create();
  const auto expected = named.create();
  ASSERT_TRUE(tokenizer && expected);
  ASSERT_EQ((*tokenizer)->notes().size(), 1U);
  EXPECT_EQ(numbers((*tokenizer)->encode("it's 12345, ok", {})),
            numbers((*expected)->encode("it's 12345, ok", {})));
  EXPECT_TRUE((*expected)->notes().empty());
}

TEST(Vocabulary, EndTokensAreEosAndKnownControlTokens) {
  TestModel model = bpe_model("gpt-2");
  const std::int32_t turn = model.add("<end_of_turn>", TokenType::kUserDefined);
  const std::int32_t word = model.add("<eos>", TokenType::kNormal);
  const std::int32_t html = model.add("</s>", TokenType::kUserDefined);
  const std::int32_t own = model.add("<my_end>", TokenType::kControl);
  model.set_u32("tokenizer.ggml.eot_token_id", static_cast<std::uint32_t>(own));
  model.finish();
  const auto created = model.create();
  ASSERT_TRUE(created);
  const Tokenizer& tokenizer = **created;
  EXPECT_TRUE(tokenizer.is_end(TokenId(0)));   // <|endoftext|>
  EXPECT_FALSE(tokenizer.is_end(TokenId(1)));  // <|im_start|>
  EXPECT_TRUE(tokenizer.is_end(TokenId(2)));   // <|im_end|>, also EOS
  EXPECT_TRUE(tokenizer.is_end(TokenId(turn)));
  EXPECT_EQ(tokenizer.type(TokenId(turn)), TokenType::kControl);  // text cannot forge it
  EXPECT_FALSE(tokenizer.is_end(TokenId(word)));
  EXPECT_FALSE(tokenizer.is_end(TokenId(html)));
  EXPECT_TRUE(tokenizer.is_end(TokenId(own)));
  EXPECT_EQ(tokenizer.end_tokens().size(), 4U);
}

TEST(Vocabulary, BosIsWantedAsTheFileOrElseTheFamilySays) {
  const auto wants = [](TestModel model, std::optional<bool> says) {
    if (says) model.set_bool("tokenizer.ggml.add_bos_token", *says);
    model.finish();
    return (*model.create())->wants_bos();
  };
  EXPECT_FALSE(wants(bpe_model("gpt-2"), std::nullopt));
  EXPECT_TRUE(wants(bpe_model("gpt-2"), true));
  EXPECT_TRUE(wants(bpe_model("llama-bpe"), std::nullopt));
  EXPECT_FALSE(wants(bpe_model("llama-bpe"), false));
  EXPECT_TRUE(wants(chain_model(), std::nullopt));
  EXPECT_FALSE(wants(chain_model(), false));
}

TEST(Vocabulary, AnIdOfAllBitsMeansNone) {
  TestModel model = bpe_model("gpt-2");
  model.set_u32("tokenizer.ggml.bos_token_id", std::numeric_limits<std::uint32_t>::max());
  model.finish();
  const auto tokenizer = model.create();
  ASSERT_TRUE(tokenizer);
  EXPECT_FALSE((*tokenizer)->bos());
  EXPECT_EQ((*tokenizer)->eos(), TokenId(2));
}

}  // namespace
}  // namespace cicada::tokenizer
