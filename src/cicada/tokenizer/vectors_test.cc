// The 46 texts of llama.cpp's vocabulary tests, with ids made by each family's own tokenizer.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/formats/model_file.h"
#include "cicada/tokenizer/data_for_test.h"
#include "cicada/tokenizer/model_for_test.h"
#include "cicada/tokenizer/tokenizer.h"

namespace cicada::tokenizer {
namespace {

struct Family {
  std::string name;   // of the .inp and .out files
  std::string vocab;  // a vocabulary beside them, or a known model's file
  bool is_model = false;
};

std::vector<std::string> texts_of(const std::string& file) {
  constexpr std::string_view kEnd = "\n__ggml_vocab_test__\n";
  std::vector<std::string> texts;
  for (std::size_t begin = 0; begin < file.size();) {
    const std::size_t end = file.find(kEnd, begin);
    texts.push_back(file.substr(begin, end - begin));
    if (end == std::string::npos) break;
    begin = end + kEnd.size();
  }
  return texts;
}

std::vector<std::vector<std::int32_t>> ids_of(const std::string& file) {
  std::vector<std::vector<std::int32_t>> all;
  std::istringstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    all.emplace_back(std::istream_iterator<std::int32_t>(words),
                     std::istream_iterator<std::int32_t>());
  }
  return all;
}

class Vectors : public testing::TestWithParam<Family> {};

TEST_P(Vectors, IdsAreThoseOfTheFamilysOwnTokenizer) {
  const Family& family = GetParam();
  const auto folder = data_folder(CICADA_SOURCE_DIR) / "tokenizer-vectors";
  const auto vocab = (family.is_model ? models_folder() : folder) / (family.vocab + ".gguf");
  const auto inputs = read_text(folder / ("ggml-vocab-" + family.name + ".gguf.inp"));
  const auto outputs = read_text(folder / ("ggml-vocab-" + family.name + ".gguf.out"));
  if (!inputs || !outputs) GTEST_SKIP() << "no test vectors in " << folder;
  if (!std::filesystem::exists(vocab)) GTEST_SKIP() << "no vocabulary " << vocab;
  const auto file = formats::ModelFile::open(vocab.string());
  ASSERT_TRUE(file) << file.error().to_string();
  const auto tokenizer = Tokenizer::create(*file);
  ASSERT_TRUE(tokenizer) << tokenizer.error().to_string();
  const auto texts = texts_of(*inputs);
  const auto expected = ids_of(*outputs);
  ASSERT_EQ(texts.size(), 46U);
  ASSERT_EQ(expected.size(), 46U);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto ids = (*tokenizer)->encode(texts[i], {});
    EXPECT_EQ(numbers(ids), expected[i]) << "text " << i << ": " << texts[i];
    EXPECT_EQ((*tokenizer)->decode(ids, false), texts[i]) << "text " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Families, Vectors,
    testing::Values(Family{"gpt-2", "ggml-vocab-gpt-2"}, Family{"mpt", "ggml-vocab-mpt"},
                    Family{"falcon", "ggml-vocab-falcon"}, Family{"phi-3", "ggml-vocab-phi-3"},
                    Family{"llama-spm", "ggml-vocab-phi-3"},  // the same 32000 pieces
                    Family{"qwen2", "qwen2.5-coder-1.5b", true}),
    [](const auto& param) {
      std::string name = param.param.name;
      std::erase(name, '-');
      return name;
    });

}  // namespace
}  // namespace cicada::tokenizer
