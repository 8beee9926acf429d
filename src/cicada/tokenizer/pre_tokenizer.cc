#include "cicada/tokenizer/pre_tokenizer.h"

#include <array>
#include <cstddef>

#include "cicada/tokenizer/unicode.h"

namespace cicada::tokenizer {
namespace {

using Words = std::vector<std::string_view>;

constexpr std::array<PreTokenizer, 32> kPreTokenizers = {{
    {"default", Splitter::kDefault},
    {"gpt-2", Splitter::kGpt2},
    {"mpt", Splitter::kGpt2},
    {"phi-2", Splitter::kGpt2},
    {"olmo", Splitter::kGpt2},
    {"jais", Splitter::kGpt2},
    {"trillion", Splitter::kGpt2},
    {"exaone4", Splitter::kGpt2},
    {"granite-docling", Splitter::kGpt2},
    {"smollm", Splitter::kSmollm},
    {"starcoder", Splitter::kSmollm},
    {"refact", Splitter::kSmollm},
    {"command-r", Splitter::kSmollm},
    {"codeshell", Splitter::kSmollm},
    {"exaone", Splitter::kSmollm},
    {"minerva-7b", Splitter::kSmollm},
    {"falcon", Splitter::kFalcon},
    {"llama-bpe", Splitter::kLlama3, true, true},
    {"llama3", Splitter::kLlama3, true, true},
    {"llama-v3", Splitter::kLlama3, true, true},
    {"falcon3", Splitter::kLlama3, true, true},
    {"pixtral", Splitter::kLlama3, true, true},
    {"lfm2", Splitter::kLlama3, true, true},
    {"dbrx", Splitter::kLlama3},
    {"smaug-bpe", Splitter::kLlama3},
    {"chatglm-bpe", Splitter::kLlama3},
    {"glm4", Splitter::kLlama3},
    {"qwen2", Splitter::kQwen2},
    {"deepseek-r1-qwen", Splitter::kQwen2},
    {"megrez", Splitter::kQwen2},
    {"hunyuan", Splitter::kQwen2},
    {"stablelm2", Splitter::kQwen2},
}};

// A character that is not letter, number or space: [^\s\p{L}\p{N}].
bool is_symbol(CharClass c) { return c == CharClass::kPunctuation || c == CharClass::kOther; }

bool is_newline(const Char& c) { return c.code_point == '\r' || c.code_point == '\n'; }

// The end of the longest run of characters from `pos` that satisfy `matches`.
template <typename Matches>
std::size_t run_end(std::string_view text, std::size_t pos, Matches&& matches) {
  while (pos < text.size()) {
    const Char c = char_at(text, pos);
    if (!matches(c)) break;
    pos += c.size_bytes;
  }
  return pos;
}

std::size_t letters_end(std::string_view text, std::size_t pos) {
  return run_end(text, pos, [](const Char& c) { return c.char_class == CharClass::kLetter; });
}

std::size_t symbols_end(std::string_view text, std::size_t pos) {
  return run_end(text, pos, [](const Char& c) { return is_symbol(c.char_class); });
}

// The bytes of 's 't 're 've 'm 'll 'd at `pos`; 0 when there is none.
std::size_t contraction_bytes(std::string_view text, std::size_t pos, bool any_case) {
  if (text[pos] != '\'') return 0;
  const auto letter = [&](std::size_t i) {
    if (pos + i >= text.size()) return '\0';
    const char c = text[pos + i];
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  const char first = letter(1);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  const char second = letter(2);
  if ((first == 'r' || first == 'v') && second == 'e') return 3;
  return first == 'l' && second == 'l' ? 3 : 0;
}

// A run of spaces: its end, where its last character begins, and the end of its last line break
// (equal to the beginning when there is none).
struct SpaceRun {
  std::size_t end = 0;
  std::size_t last_begin = 0;
  std::size_t newline_end = 0;
};

SpaceRun space_run(std::string_view text, std::size_t pos) {
  SpaceRun run{pos, pos, pos};
  while (run.end < text.size()) {
    const Char c = char_at(text, run.end);
    if (c.char_class != CharClass::kSpace) break;
    run.last_begin = run.end;
    run.end += c.size_bytes;
    if (is_newline(c)) run.newline_end = run.end;
  }
  return run;
}

// \s+(?!\S)|\s+ : all spaces, but before something else the last one is left to it.
std::size_t spaces_word_end(std::string_view text, std::size_t pos, const SpaceRun& run) {
  return run.end == text.size() || run.last_begin == pos ? run.end : run.last_begin;
}

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
std::size_t gpt2_word_end(std::string_view text, std::size_t pos) {
  if (const std::size_t bytes = contraction_bytes(text, pos, false)) return pos + bytes;
  const std::size_t body = pos + (text[pos] == ' ' ? 1 : 0);
  if (body < text.size()) {
    const CharClass kind = char_at(text, body).char_class;
    if (is_symbol(kind)) return symbols_end(text, body);
    if (kind != CharClass::kSpace) {
      return run_end(text, body, [kind](const Char& c) { return c.char_class == kind; });
    }
  }
  return spaces_word_end(text, pos, space_run(text, pos));
}

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,max_numbers}|
//  ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
std::size_t llama3_word_end(std::string_view text, std::size_t pos, int max_numbers) {
  if (const std::size_t bytes = contraction_bytes(text, pos, true)) return pos + bytes;
  const Char first = char_at(text, pos);
  const std::size_t second = pos + first.size_bytes;
  if (first.char_class == CharClass::kNumber) {
    int left = max_numbers;
    return run_end(text, pos, [&left](const Char& c) {
      return c.char_class == CharClass::kNumber && left-- > 0;
    });
  }
  if (first.char_class == CharClass::kLetter) return letters_end(text, second);
  if (!is_newline(first)) {
    const std::size_t end = letters_end(text, second);
    if (end != second) return end;
  }
  const std::size_t body = first.code_point == ' ' ? second : pos;
  const std::size_t symbols = symbols_end(text, body);
  if (symbols != body) return run_end(text, symbols, is_newline);
  const SpaceRun run = space_run(text, pos);
  return run.newline_end != pos ? run.newline_end : spaces_word_end(text, pos, run);
}

void split_gpt2(std::string_view text, Words& words) {
  for (std::size_t pos = 0; pos < text.size();) {
    const std::size_t end = gpt2_word_end(text, pos);
    words.push_back(text.substr(pos, end - pos));
    pos = end;
  }
}

void split_llama3(std::string_view text, int max_numbers, Words& words) {
  for (std::size_t pos = 0; pos < text.size();) {
    const std::size_t end = llama3_word_end(text, pos, max_numbers);
    words.push_back(text.substr(pos, end - pos));
    pos = end;
  }
}

// Sets runs of at most `max_run` characters that satisfy `matches` apart from the text between
// them.
template <typename Matches>
void set_apart(std::string_view text, std::size_t max_run, Matches&& matches, Words& words) {
  std::size_t gap = 0;
  for (std::size_t pos = 0; pos < text.size();) {
    std::size_t left = max_run;
    const std::size_t end =
        run_end(text, pos, [&](const Char& c) { return matches(c) && left-- > 0; });
    if (end == pos) {
      pos += char_at(text, pos).size_bytes;
      continue;
    }
    if (gap != pos) words.push_back(text.substr(gap, pos - gap));
    words.push_back(text.substr(pos, end - pos));
    gap = pos = end;
  }
  if (gap != text.size()) words.push_back(text.substr(gap));
}

bool is_number(const Char& c) { return c.char_class == CharClass::kNumber; }

// [\p{P}\$\+<=>\^~\|]+ , for falcon with the backtick.
template <bool kBacktick>
bool is_mark(const Char& c) {
  if (c.char_class == CharClass::kPunctuation) return true;
  constexpr std::u32string_view kSymbols = kBacktick ? U"$+<=>^~|`" : U"$+<=>^~|";
  return kSymbols.find(c.code_point) != std::u32string_view::npos;
}

// [0-9][0-9][0-9] set apart; one or two digits stay with the text around them.
void split_digit_triples(std::string_view text, Words& words) {
  const auto is_digit = [&](std::size_t i) { return text[i] >= '0' && text[i] <= '9'; };
  std::size_t gap = 0;
  for (std::size_t pos = 0; pos + 3 <= text.size();) {
    if (!is_digit(pos) || !is_digit(pos + 1) || !is_digit(pos + 2)) {
      ++pos;
      continue;
    }
    if (gap != pos) words.push_back(text.substr(gap, pos - gap));
    words.push_back(text.substr(pos, 3));
    gap = pos += 3;
  }
  if (gap != text.size()) words.push_back(text.substr(gap));
}

constexpr std::size_t kAnyRun = static_cast<std::size_t>(-1);

// Applies a pass to each word of the pass before it, as if each were a text of its own.
template <typename Pass>
Words refine(const Words& words, Pass&& pass) {
  Words finer;
  finer.reserve(words.size());
  for (const std::string_view word : words) pass(word, finer);
  return finer;
}

void split_passes(Splitter splitter, std::string_view text, Words& words) {
  Words parts;
  if (splitter == Splitter::kSmollm) {
    set_apart(text, 1, is_number, parts);
    parts = refine(parts, split_gpt2);
  } else if (splitter == Splitter::kFalcon) {
    set_apart(text, kAnyRun, is_mark<true>, parts);
    parts = refine(parts, split_gpt2);
    parts = refine(parts, split_digit_triples);
  } else {
    set_apart(text, kAnyRun, is_mark<false>, parts);
    parts = refine(parts, split_gpt2);
    parts = refine(parts, [](std::string_view word, Words& finer) {
      set_apart(word, kAnyRun, is_number, finer);
    });
    parts = refine(parts, split_digit_triples);
  }
  words.insert(words.end(), parts.begin(), parts.end());
}

}  // namespace

const PreTokenizer* find_pre_tokenizer(std::string_view name) {
  for (const PreTokenizer& known : kPreTokenizers) {
    if (known.name == name) return &known;
  }
  return nullptr;
}

std::string known_pre_tokenizers() {
  std::string names;
  for (const PreTokenizer& known : kPreTokenizers) {
    if (!names.empty()) names += ", ";
    names += known.name;
  }
  return names;
}

void split_words(Splitter splitter, std::string_view text, std::vector<std::string_view>& words) {
  switch (splitter) {
    case Splitter::kGpt2:
      return split_gpt2(text, words);
    case Splitter::kLlama3:
      return split_llama3(text, 3, words);
    case Splitter::kQwen2:
      return split_llama3(text, 1, words);
    default:
      return split_passes(splitter, text, words);
  }
}

}  // namespace cicada::tokenizer
