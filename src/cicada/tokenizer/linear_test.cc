// BC-02: one run of 200 000 equal characters, of every kind, through every kind of tokenizer.
#include <gtest/gtest.h>

#include <array>
#include <ctime>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "cicada/tokenizer/model_for_test.h"
#include "cicada/tokenizer/tokenizer.h"

namespace cicada::tokenizer {
namespace {

constexpr std::size_t kCharacters = 200'000;

std::string repeated(std::string_view character, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += character;
  return text;
}

std::string mixed(std::mt19937& random, std::size_t count) {
  constexpr std::string_view kAscii = "aaah elo7.,'\n\t$";
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text.push_back(kAscii[random() % kAscii.size()]);
  return text;
}

// Processor time, which other programs on the machine do not lengthen.
double seconds_to_encode(const Tokenizer& tokenizer, std::string_view text) {
  const std::clock_t start = std::clock();
  const auto ids = tokenizer.encode(text, {});
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  EXPECT_EQ(tokenizer.decode(ids, false), text);
  return seconds;
}

struct Character {
  std::string_view name;
  std::string_view text;  // empty: random mixed ones
};

constexpr std::array<Character, 9> kRuns = {{{"letter", "a"},
                                             {"digit", "7"},
                                             {"space", " "},
                                             {"period", "."},
                                             {"newline", "\n"},
                                             {"cjk", "\u6F22"},
                                             {"emoji", "\U0001F999"},
                                             {"invalid", "\xFF"},
                                             {"mixed", ""}}};

class LinearTime : public testing::TestWithParam<std::tuple<std::string, Character>> {};

// 5 ms is the clock's own error; a quadratic step takes minutes here.
TEST_P(LinearTime, TwiceTheLengthTakesAtMostThreeTimes) {
  const auto& [kind, character] = GetParam();
  TestModel model = kind == "spm" ? chain_model() : bpe_model(kind);
  // Runs of user-defined tokens, as Gemma's vocabulary has them, and pieces that overlap.
  for (std::size_t size = 2; size < 32 && kind == "spm"; ++size) {
    model.add(repeated(" ", size), TokenType::kUserDefined);
    model.add(repeated("a", size), TokenType::kNormal, -static_cast<float>(size));
  }
  model.finish();
  const auto tokenizer = std::move(*model.create());
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto text_of = [&, text = character.text](std::size_t count) {
    return text.empty() ? mixed(random, count) : repeated(text, count);
  };
  // A busy machine may spoil one measurement, a quadratic step spoils all of them.
  double half_seconds = 0;
  double seconds = 0;
  for (int attempt = 0; attempt < 3; ++attempt) {
    half_seconds = seconds_to_encode(*tokenizer, text_of(kCharacters / 2));
    seconds = seconds_to_encode(*tokenizer, text_of(kCharacters));
    if (seconds <= 3 * half_seconds + 0.005) break;
  }
  EXPECT_LE(seconds, 3 * half_seconds + 0.005);
  EXPECT_LT(seconds, 5);
}

INSTANTIATE_TEST_SUITE_P(Runs, LinearTime,
                         testing::Combine(testing::Values("spm", "gpt-2", "smollm", "qwen2",
                                                          "llama-bpe", "falcon", "default"),
                                          testing::ValuesIn(kRuns)),
                         [](const auto& param) {
                           std::string name = std::get<0>(param.param) + "_";
                           std::erase(name, '-');
                           return name += std::get<1>(param.param).name;
                         });

}  // namespace
}  // namespace cicada::tokenizer
