// Ids of the three known models against llama.cpp's, which tools/tokenizer_oracle.py wrote into
// testdata/tokenizer: all ids of two small texts, count and hash of larger ones.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "cicada/formats/model_file.h"
#include "cicada/tokenizer/data_for_test.h"
#include "cicada/tokenizer/model_for_test.h"
#include "cicada/tokenizer/tokenizer.h"

namespace cicada::tokenizer {
namespace {

std::filesystem::path golden_folder() {
  return std::filesystem::path(CICADA_TESTDATA_DIR) / "tokenizer";
}

// FNV-1a, 64 bits, over the ids as little-endian 32-bit integers: enough to tell that something
// changed, and no module of its own.
std::string hash_of(const std::vector<std::int32_t>& ids) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const std::int32_t id : ids) {
    for (int shift = 0; shift < 32; shift += 8) {
      hash ^= (static_cast<std::uint32_t>(id) >> shift) & 0xFFU;
      hash *= 0x100000001B3;
    }
  }
  return fmt::format("{:016x}", hash);
}

struct Opened {
  formats::ModelFile file;
  std::unique_ptr<Tokenizer> tokenizer;
};

std::optional<Opened> open(const std::string& model) {
  const auto path = models_folder() / (model + ".gguf");
  if (!std::filesystem::exists(path)) return std::nullopt;
  auto file = formats::ModelFile::open(path.string());
  EXPECT_TRUE(file) << file.error().to_string();
  auto tokenizer = Tokenizer::create(*file);
  EXPECT_TRUE(tokenizer) << tokenizer.error().to_string();
  return Opened{std::move(*file), std::move(*tokenizer)};
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, IdsOfTheSmallTextsAreLlamaCpps) {
  const std::string& model = GetParam();
  const auto opened = open(model);
  if (!opened) GTEST_SKIP() << "no model " << models_folder() / (model + ".gguf");
  for (const std::string text_name : {"multilingual", "emoji"}) {
    for (const bool special : {false, true}) {
      const auto text = read_text(golden_folder() / (text_name + ".txt"));
      const auto golden = read_text(golden_folder() / fmt::format("{}.{}{}.ids", model, text_name,
                                                                  special ? ".special" : ""));
      ASSERT_TRUE(text && golden);
      std::istringstream words(*golden);
      const std::vector<std::int32_t> expected{std::istream_iterator<std::int32_t>(words), {}};
      const auto ids = opened->tokenizer->encode(*text, {.parse_special = special});
      EXPECT_EQ(numbers(ids), expected) << text_name << (special ? " with special tokens" : "");
    }
  }
}

// The text but for what the vocabulary has no token for: SmolLM2 lacks some control characters.
TEST_P(Golden, DetokenisedOneByOneTheSmallTextsComeBack) {
  const std::string& model = GetParam();
  const auto opened = open(model);
  if (!opened) GTEST_SKIP() << "no model " << models_folder() / (model + ".gguf");
  const auto text = read_text(golden_folder() / "multilingual.txt");
  ASSERT_TRUE(text);
  Detokenizer detokenizer(*opened->tokenizer);
  std::string joined;
  for (const TokenId id : opened->tokenizer->encode(*text, {})) joined += detokenizer.add(id);
  EXPECT_EQ(joined + detokenizer.finish(), *text);
}

TEST_P(Golden, CountAndHashOfTheLargeTextsAreLlamaCpps) {
  const std::string& model = GetParam();
  const auto opened = open(model);
  if (!opened) GTEST_SKIP() << "no model " << models_folder() / (model + ".gguf");
  const auto golden = read_text(golden_folder() / "large_texts.txt");
  ASSERT_TRUE(golden);
  std::istringstream lines(*golden);
  int compared = 0;
  for (std::string name, path, count, hash; lines >> name >> path >> count >> hash;) {
    if (name != model) continue;
    const auto text = read_text(data_folder(CICADA_SOURCE_DIR) / path);
    if (!text) GTEST_SKIP() << "no text " << data_folder(CICADA_SOURCE_DIR) / path;
    const auto ids = opened->tokenizer->encode(*text, {});
    EXPECT_EQ(std::to_string(ids.size()), count) << path;
    EXPECT_EQ(hash_of(numbers(ids)), hash) << path;
    EXPECT_EQ(opened->tokenizer->decode(ids, false), *text) << path;
    ++compared;
  }
  EXPECT_EQ(compared, 2);
}

INSTANTIATE_TEST_SUITE_P(Models, Golden,
                         testing::Values("smollm2", "gemma3-270m", "qwen2.5-coder-1.5b"),
                         [](const auto& param) {
                           return param.param.substr(0, param.param.find_first_of("-."));
                         });

}  // namespace
}  // namespace cicada::tokenizer
