// Pre-tokenizers: how byte-level BPE cuts text into words before it merges inside each. Every
// family defines its cuts by regular expressions; these are hand-written matchers of the same
// language, so that time is linear on any input (docs/tokenizers.md lists the expressions).
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cicada::tokenizer {

enum class Splitter : std::uint8_t {
  kGpt2,
  kSmollm,   // numbers one by one, then GPT-2
  kLlama3,   // numbers in threes, contractions in any case
  kQwen2,    // as kLlama3 with numbers one by one
  kFalcon,   // runs of punctuation, then GPT-2, then ASCII digits in threes
  kDefault,  // as kFalcon with all numbers set apart: files that name no pre-tokenizer
};

// What a name under `tokenizer.ggml.pre` stands for.
struct PreTokenizer {
  std::string_view name;
  Splitter splitter = Splitter::kDefault;
  bool ignore_merges = false;  // a word that is a token is that token, whatever the merges say
  bool wants_bos = false;      // where the file does not say
};

// Nothing for a name that is not known.
const PreTokenizer* find_pre_tokenizer(std::string_view name);

// All known names, for messages: "default, falcon, …".
std::string known_pre_tokenizers();

// Cuts `text` into words, appended to `words` in order; together they are the text. Views of
// `text`.
void split_words(Splitter splitter, std::string_view text, std::vector<std::string_view>& words);

}  // namespace cicada::tokenizer
