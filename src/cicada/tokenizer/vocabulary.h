// What a model file says about its vocabulary, read and checked: tokens, types, scores, special
// ids, end tokens. docs/tokenizers.md says what each key means and which mistakes are refused.
// Lifetime: texts are views into the file that owns the metadata.
// Threads: a value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/base/ids.h"
#include "cicada/base/result.h"
#include "cicada/formats/metadata.h"
#include "cicada/tokenizer/token_table.h"
#include "cicada/tokenizer/tokenizer.h"

namespace cicada::tokenizer {

enum class VocabularyKind : std::uint8_t {
  kByteBpe,  // `tokenizer.ggml.model` = "gpt2"
  kSpm,      // "llama"
};

struct Vocabulary {
  VocabularyKind kind = VocabularyKind::kByteBpe;
  std::vector<std::string_view> texts;  // [tokens] as the file spells them
  std::vector<TokenType> types;         // [tokens]
  std::vector<float> scores;            // [tokens], never NaN; empty when the file has none
  TokenTable table;                     // borrows texts
  std::optional<TokenId> bos, eos, unknown;
  std::vector<TokenId> ends;
  std::optional<bool> add_bos;       // as the file says
  bool add_space_prefix = false;     // SPM: a space goes in front of every stretch of text
  bool specials_eat_spaces = false;  // white space after a special token belongs to it (Phi-3)
  std::vector<std::string> notes;    // what a user should know about an imperfect file
};

// True for tokens that text may not turn into unless a special token was asked for.
constexpr bool is_special(TokenType type) {
  return type == TokenType::kControl || type == TokenType::kUnknown;
}

// Errors: kUnsupported for a tokenizer model that is not known; kCorrupt for keys of a wrong type,
// arrays of a wrong length, ids outside the vocabulary, duplicate tokens, an empty vocabulary.
Result<Vocabulary> load_vocabulary(const formats::Metadata& metadata);

}  // namespace cicada::tokenizer
