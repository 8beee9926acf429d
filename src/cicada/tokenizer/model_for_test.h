// For tests and the fuzzer: metadata of small made vocabularies, held in memory.
// Threads: one thread. Lifetime: tokenizers made from a TestModel must not outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cicada/formats/metadata.h"
#include "cicada/tokenizer/byte_alphabet.h"
#include "cicada/tokenizer/tokenizer.h"

namespace cicada::tokenizer {

class TestModel {
 public:
  void set_string(const std::string& key, std::string_view value) {
    strings_.emplace_back(value);
    metadata_.set(key, {formats::MetaType::kString, std::string_view(strings_.back())});
  }
  void set_u32(const std::string& key, std::uint32_t value) {
    metadata_.set(key, {formats::MetaType::kU32, std::uint64_t{value}});
  }
  void set_bool(const std::string& key, bool value) {
    metadata_.set(key, {formats::MetaType::kBool, std::uint64_t{value ? 1U : 0U}});
  }
  void set_strings(const std::string& key, const std::vector<std::string>& values) {
    std::vector<std::byte> bytes;
    for (const std::string& value : values) {
      append(bytes, std::uint64_t{value.size()});
      for (const char c : value) bytes.push_back(static_cast<std::byte>(c));
    }
    set_array(key, formats::MetaType::kString, values.size(), std::move(bytes));
  }
  void set_ints(const std::string& key, const std::vector<std::int32_t>& values) {
    std::vector<std::byte> bytes;
    for (const std::int32_t value : values) append(bytes, value);
    set_array(key, formats::MetaType::kI32, values.size(), std::move(bytes));
  }
  void set_floats(const std::string& key, const std::vector<float>& values) {
    std::vector<std::byte> bytes;
    for (const float value : values) append(bytes, value);
    set_array(key, formats::MetaType::kF32, values.size(), std::move(bytes));
  }

  // Adds a token; finish() writes them all. Gives its id.
  std::int32_t add(std::string_view text, TokenType type = TokenType::kNormal, float score = 0) {
    texts_.emplace_back(text);
    types_.push_back(static_cast<std::int32_t>(type));
    scores_.push_back(score);
    return static_cast<std::int32_t>(texts_.size() - 1);
  }
  void add_merge(const std::string& left, const std::string& right) {
    merges_.push_back(left + " " + right);
  }
  // A merge and the token that it gives.
  void add_merged(const std::string& left, const std::string& right) {
    add_merge(left, right);
    add(left + right);
  }
  void finish() {
    set_strings("tokenizer.ggml.tokens", texts_);
    set_ints("tokenizer.ggml.token_type", types_);
    set_floats("tokenizer.ggml.scores", scores_);
    set_strings("tokenizer.ggml.merges", merges_);
  }

  std::size_t num_tokens() const { return texts_.size(); }
  const formats::Metadata& metadata() const { return metadata_; }
  Result<std::unique_ptr<Tokenizer>> create() const { return Tokenizer::create(metadata_); }

 private:
  template <typename T>
  static void append(std::vector<std::byte>& bytes, T value) {
    const std::size_t at = bytes.size();
    bytes.resize(at + sizeof(T));
    std::memcpy(bytes.data() + at, &value, sizeof(T));
  }
  void set_array(const std::string& key, formats::MetaType type, std::size_t count,
                 std::vector<std::byte> bytes) {
    arrays_.push_back(std::move(bytes));
    metadata_.set(key,
                  {formats::MetaType::kArray, formats::MetaArray{type, count, arrays_.back()}});
  }

  // Deques: what the metadata views stays where it is.
  std::deque<std::string> strings_;
  std::deque<std::vector<std::byte>> arrays_;
  formats::Metadata metadata_;
  std::vector<std::string> texts_;
  std::vector<std::int32_t> types_;
  std::vector<float> scores_;
  std::vector<std::string> merges_;
};

// Byte-level BPE: three control tokens and a user-defined one, the 256 bytes, and merges for a few
// words and for long runs of a, space and newline. Not finished: the caller may add to it.
inline TestModel bpe_model(std::string_view pre) {
  TestModel model;
  model.set_string("tokenizer.ggml.model", "gpt2");
  if (!pre.empty()) model.set_string("tokenizer.ggml.pre", pre);
  model.add("<|endoftext|>", TokenType::kControl);
  model.add("<|im_start|>", TokenType::kControl);
  model.add("<|im_end|>", TokenType::kControl);
  model.add("<tool>", TokenType::kUserDefined);
  for (int byte = 0; byte < 256; ++byte) {
    std::string spelled;
    append_spelled(static_cast<std::uint8_t>(byte), spelled);
    model.add(spelled);
  }
  const std::string space = "\u0120";
  const std::string newline = "\u010A";
  for (std::string run : {std::string("a"), space, newline}) {
    for (int doubling = 0; doubling < 4; ++doubling) {
      model.add_merged(run, run);
      run += run;
    }
  }
  model.add_merged("h", "e");
  model.add_merged("l", "l");
  model.add_merged("he", "ll");
  model.add_merged("hell", "o");
  model.add_merged(space, "w");
  model.add_merged("o", "r");
  model.set_u32("tokenizer.ggml.bos_token_id", 0);
  model.set_u32("tokenizer.ggml.eos_token_id", 2);
  return model;
}

// The SPM vocabulary of the CHAIN model of the cases: start and end tokens, 256 byte pieces, a-z,
// th, he and U+2581, no space in front. Not finished.
inline TestModel chain_model() {
  TestModel model;
  model.set_string("tokenizer.ggml.model", "llama");
  model.set_bool("tokenizer.ggml.add_space_prefix", false);
  model.add("<unk>", TokenType::kUnknown);
  model.add("<s>", TokenType::kControl);
  model.add("</s>", TokenType::kControl);
  for (int byte = 0; byte < 256; ++byte) {
    model.add(fmt::format("<0x{:02X}>", byte), TokenType::kByte);
  }
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    model.add(std::string(1, letter), TokenType::kNormal, -10.0F);
  }
  model.add("\u2581", TokenType::kNormal, -10.0F);
  model.add("th", TokenType::kNormal, -1.0F);
  model.add("he", TokenType::kNormal, -2.0F);
  return model;
}

// Ids as plain numbers, for comparisons that print well.
inline std::vector<std::int32_t> numbers(const std::vector<TokenId>& ids) {
  std::vector<std::int32_t> values;
  values.reserve(ids.size());
  for (const TokenId id : ids) values.push_back(id.value);
  return values;
}

}  // namespace cicada::tokenizer
