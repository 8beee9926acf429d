// The made vocabulary of the bad-input cases (SPM: a to z, "th", "he", the space mark, 256 byte
// pieces, control pieces), for tests of the chat module.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/tokenizer/tokenizer.h"

namespace cicada::chat {

class TinyVocabulary {
 public:
  struct Options {
    bool add_bos = true;
    std::vector<std::string> control = {"<|im_start|>", "<|im_end|>"};
    std::vector<std::string> user_defined = {};
  };

  explicit TinyVocabulary(const Options& options) {
    add("<unk>", 2);
    add("<s>", 3);
    add("</s>", 3);
    for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte), 6);
    for (const std::string& text : options.control) add(text, 3);
    for (const std::string& text : options.user_defined) add(text, 4);
    for (char letter = 'a'; letter <= 'z'; ++letter) add(std::string(1, letter), 1);
    for (const char* text : {"th", "he", "\u2581"}) add(text, 1);
    set_string("tokenizer.ggml.model", "llama");
    set_array("tokenizer.ggml.tokens", formats::MetaType::kString, texts_);
    set_array("tokenizer.ggml.scores", formats::MetaType::kF32, scores_);
    set_array("tokenizer.ggml.token_type", formats::MetaType::kI32, types_);
    set_number("tokenizer.ggml.bos_token_id", 1);
    set_number("tokenizer.ggml.eos_token_id", 2);
    set_number("tokenizer.ggml.unknown_token_id", 0);
    metadata_.set("tokenizer.ggml.add_bos_token",
                  {formats::MetaType::kBool, std::uint64_t{options.add_bos}});
    metadata_.set("tokenizer.ggml.add_space_prefix",
                  {formats::MetaType::kBool, std::uint64_t{false}});
    auto created = tokenizer::Tokenizer::create(metadata_);
    if (created) tokenizer_ = *std::move(created);
  }
  TinyVocabulary() : TinyVocabulary(Options{}) {}
  TinyVocabulary(const TinyVocabulary&) = delete;
  TinyVocabulary& operator=(const TinyVocabulary&) = delete;

  const tokenizer::Tokenizer& tokenizer() const { return *tokenizer_; }
  const formats::Metadata& metadata() const { return metadata_; }
  TokenId id(std::string_view text) const { return tokenizer_->find(text); }

  // The value must outlive the vocabulary.
  void set_string(const char* key, std::string_view value) {
    metadata_.set(key, {formats::MetaType::kString, value});
  }
  void set_number(const char* key, std::uint64_t value) {
    metadata_.set(key, {formats::MetaType::kU32, value});
  }

 private:
  template <typename T>
  static void append(std::string& bytes, T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }

  void add(std::string_view text, std::int32_t type) {
    append(texts_, static_cast<std::uint64_t>(text.size()));
    texts_ += text;
    append(scores_, -static_cast<float>(count_));
    append(types_, type);
    ++count_;
  }

  void set_array(const char* key, formats::MetaType type, const std::string& bytes) {
    const formats::MetaArray array{type, count_, std::as_bytes(std::span(bytes))};
    metadata_.set(key, {formats::MetaType::kArray, array});
  }

  std::uint64_t count_ = 0;
  std::string texts_, scores_, types_;  // the arrays as GGUF stores them
  formats::Metadata metadata_;
  std::unique_ptr<tokenizer::Tokenizer> tokenizer_;
};

}  // namespace cicada::chat
