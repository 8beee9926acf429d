#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "cicada/tokenizer/model_for_test.h"
#include "cicada/tokenizer/tokenizer.h"
#include "cicada/tokenizer/unicode.h"

namespace cicada::tokenizer {
namespace {

// A vocabulary in which every part of `text` (from i to j) is a token, spelled byte by byte.
struct Parts {
  TestModel model = bpe_model("gpt-2");
  std::unique_ptr<Tokenizer> tokenizer;

  explicit Parts(const std::string& text) {
    for (std::size_t begin = 0; begin < text.size(); ++begin) {
      for (std::size_t size = 2; begin + size <= text.size(); ++size) {
        const std::string part = spelled(text.substr(begin, size));
        if (seen_.insert(part).second) model.add(part);
      }
    }
    model.finish();
    tokenizer = std::move(*model.create());
  }

  TokenId token(const std::string& part) const { return tokenizer->find(spelled(part)); }

  static std::string spelled(std::string_view part) {
    std::string text;
    append_spelled(part, text);
    return text;
  }

 private:
  std::set<std::string> seen_;
};

std::string replaced(const std::string& bytes) {
  std::string text;
  for (std::size_t pos = 0; pos < bytes.size();) {
    const Utf8Step step = utf8_step(bytes, pos);
    text += step.state == Utf8State::kValid ? bytes.substr(pos, step.size_bytes)
                                            : std::string(kReplacementUtf8);
    pos += step.size_bytes;
  }
  return text;
}

// Every way to cut `text` into tokens gives the same joined output, and no piece of it is less than
// whole characters.
void expect_every_cut_gives(const std::string& text, const std::string& expected) {
  const Parts parts(text);
  for (std::uint32_t cuts = 0; cuts < (1U << (text.size() - 1)); ++cuts) {
    Detokenizer detokenizer(*parts.tokenizer);
    std::string joined;
    std::size_t begin = 0;
    for (std::size_t end = 1; end <= text.size(); ++end) {
      if (end != text.size() && ((cuts >> (end - 1)) & 1U) == 0) continue;
      const std::string delta = detokenizer.add(parts.token(text.substr(begin, end - begin)));
      EXPECT_EQ(replaced(delta), delta) << "half a character at cuts " << cuts;
      joined += delta;
      begin = end;
    }
    joined += detokenizer.finish();
    ASSERT_EQ(joined, expected) << "cuts " << cuts;
  }
}

TEST(Detokenizer, EveryCutOfMultiByteTextGivesTheText) {
  expect_every_cut_gives("\u00E9\u6F22\U0001F999!", "\u00E9\u6F22\U0001F999!");
}

TEST(Detokenizer, EveryCutOfInvalidBytesGivesTheSameReplacements) {
  // The example of Unicode 15, table 3-11: one U+FFFD for each maximal subpart.
  expect_every_cut_gives("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", "\uFFFD\uFFFD\uFFFD\uFFFD\x41");
  expect_every_cut_gives("a\xF0\x9F\xA6", "a\uFFFD");
}

// BC-04: four byte pieces of one emoji come out as one delta.
TEST(Detokenizer, HoldsBackUntilTheCharacterIsWhole) {
  TestModel model = chain_model();
  model.finish();
  const auto tokenizer = std::move(*model.create());
  Detokenizer detokenizer(*tokenizer);
  std::vector<std::string> deltas;
  for (const char* piece : {"o", "<0xF0>", "<0x9F>", "<0xA6>", "<0x99>", "k", "</s>"}) {
    deltas.push_back(detokenizer.add(tokenizer->find(piece)));
  }
  EXPECT_EQ(deltas, (std::vector<std::string>{"o", "", "", "", "\U0001F999", "k", ""}));
  EXPECT_EQ(detokenizer.finish(), "");
}

TEST(Detokenizer, FinishGivesOneReplacementAndForgets) {
  TestModel model = chain_model();
  model.finish();
  const auto tokenizer = std::move(*model.create());
  Detokenizer detokenizer(*tokenizer);
  EXPECT_EQ(detokenizer.add(tokenizer->find("<0xF0>")), "");
  EXPECT_EQ(detokenizer.add(tokenizer->find("<0x9F>")), "");
  EXPECT_EQ(detokenizer.finish(), "\uFFFD");
  EXPECT_EQ(detokenizer.finish(), "");
  EXPECT_EQ(detokenizer.add(TokenId(1 << 30)), "");
}

TEST(Detokenizer, TakesTheLeadingSpaceOffOnlyWhereEncodePutOne) {
  TestModel model = chain_model();
  model.set_bool("tokenizer.ggml.add_space_prefix", true);
  model.finish();
  const auto tokenizer = std::move(*model.create());
  const TokenId space = tokenizer->find("\u2581");
  const TokenId letter = tokenizer->find("b");
  const auto text_of = [&](Detokenizer detokenizer) {
    std::string text = detokenizer.add(space);
    text += detokenizer.add(letter);
    return text + detokenizer.add(space);
  };
  EXPECT_EQ(text_of(Detokenizer(*tokenizer)), "b ");
  EXPECT_EQ(text_of(Detokenizer(*tokenizer, letter)), " b ");
  EXPECT_EQ(text_of(Detokenizer(*tokenizer, tokenizer->find("<s>"))), "b ");
}

}  // namespace
}  // namespace cicada::tokenizer
