#include "cicada/chat/message_marks.h"

#include <algorithm>
#include <cstdint>

#include "cicada/chat/utf8.h"

namespace cicada::chat {
namespace {

constexpr std::size_t kMaxLiteralBytes = 64;
constexpr std::size_t kMaxLiterals = 256;
constexpr std::size_t kMaxWordLengths = 64;
// The private-use planes 15 and 16; the last two code points of each are no characters.
constexpr char32_t kPrivateBegin = 0xF0000;
constexpr char32_t kPrivateEnd = 0x10FFFE;

// Characters of words are left alone: templates look at words.
bool is_markable(char c) {
  constexpr std::string_view kPunctuation = "!\"#$%&()*+,/:;<=>?@[\\]^`{|}~";
  return kPunctuation.find(c) != std::string_view::npos;
}

// The literal that opens at `pos`: "<…>" or "[…]" with no further opening in it.
std::string_view literal_at(std::string_view text, std::size_t pos) {
  const char open = text[pos];
  if (open != '<' && open != '[') return {};
  const char close = open == '<' ? '>' : ']';
  const std::string_view window = text.substr(pos, kMaxLiteralBytes);
  const std::size_t end = window.find(close);
  if (end == std::string_view::npos || window.find(open, 1) < end) return {};
  return window.substr(0, end + 1);
}

bool is_control(tokenizer::TokenType type) {
  return type == tokenizer::TokenType::kControl || type == tokenizer::TokenType::kUnknown;
}

}  // namespace

std::unordered_set<std::string> tag_literals(std::string_view source) {
  std::unordered_set<std::string> literals;
  for (std::size_t pos = 0; pos < source.size() && literals.size() < kMaxLiterals; ++pos) {
    const std::string_view literal = literal_at(source, pos);
    if (!literal.empty()) literals.emplace(literal);
  }
  return literals;
}

Result<MessageMarks> MessageMarks::create(const tokenizer::Tokenizer& tokenizer,
                                          const std::unordered_set<std::string>& literals,
                                          const std::vector<std::string_view>& texts) {
  MessageMarks marks;
  marks.add_control_tokens(tokenizer);
  CICADA_TRY(marks.add_words());
  marks.add_exempt(literals);
  CICADA_TRY(marks.choose_marks(texts));
  return marks;
}

void MessageMarks::add_control_tokens(const tokenizer::Tokenizer& tokenizer) {
  for (std::int32_t i = 0; i < tokenizer.vocab_size(); ++i) {
    const TokenId id(i);
    const std::string_view text = tokenizer.token_text(id);
    if (!is_control(tokenizer.type(id)) || text.empty()) continue;
    control_.insert(text);
    const auto* const found = std::ranges::find_if(text, is_markable);
    if (found == text.end()) {
      words_.insert(text);
    } else {
      is_marked_[static_cast<unsigned char>(*found)] = true;
    }
  }
  for (std::size_t c = 0; c < is_marked_.size(); ++c) {
    if (is_marked_[c]) mark_index(static_cast<char32_t>(c));
  }
}

Result<void> MessageMarks::add_words() {
  std::set<std::size_t> lengths;
  for (const std::string_view word : words_) {
    lengths.insert(word.size());
    // A word that is not UTF-8 cannot begin in text that is.
    const CodePoint first = code_point_at(word, 0);
    if (first.size_bytes != 0) mark_index(first.value);
  }
  if (lengths.size() > kMaxWordLengths) {
    return fail(Code::kUnsupported,
                "tokenizer: control tokens without punctuation have {} lengths, at most {}",
                lengths.size(), kMaxWordLengths);
  }
  word_bytes_.assign(lengths.begin(), lengths.end());
  return {};
}

void MessageMarks::add_exempt(const std::unordered_set<std::string>& literals) {
  for (const std::string& literal : literals) {
    const bool is_part_of_control = std::ranges::any_of(
        control_, [&](std::string_view token) { return token.find(literal) != token.npos; });
    if (!is_part_of_control) exempt_.insert(literal);
  }
}

// The first run of private code points that no text holds.
Result<void> MessageMarks::choose_marks(const std::vector<std::string_view>& texts) {
  std::set<char32_t> used;
  for (const std::string_view text : texts) {
    for (std::size_t pos = 0; pos < text.size(); ++pos) {
      if (static_cast<unsigned char>(text[pos]) < 0xF3U) continue;
      const CodePoint c = code_point_at(text, pos);
      if (c.size_bytes == 4 && c.value >= kPrivateBegin) used.insert(c.value);
    }
  }
  char32_t begin = kPrivateBegin;
  for (const char32_t taken : used) {
    if (taken - begin >= originals_.size()) break;
    begin = taken + 1;
  }
  if (begin + originals_.size() > kPrivateEnd) {
    return fail(Code::kInvalidArgument,
                "messages: they hold too many different private-use characters");
  }
  first_mark_ = begin;
  return {};
}

std::size_t MessageMarks::mark_index(char32_t original) {
  const auto [place, is_new] = indices_.try_emplace(original, originals_.size());
  if (is_new) originals_.push_back(original);
  return place->second;
}

bool MessageMarks::is_exempt(std::string_view text, std::size_t pos) const {
  const std::string_view literal = literal_at(text, pos);
  return !literal.empty() && exempt_.contains(std::string(literal));
}

bool MessageMarks::begins_word(std::string_view text, std::size_t pos) const {
  return std::ranges::any_of(word_bytes_, [&](std::size_t size) {
    return pos + size <= text.size() && words_.contains(text.substr(pos, size));
  });
}

std::string MessageMarks::mark(std::string_view text) const {
  std::string marked;
  marked.reserve(text.size());
  for (std::size_t pos = 0; pos < text.size();) {
    const CodePoint c = code_point_at(text, pos);
    const bool is_hit = c.value < is_marked_.size() && is_marked_[c.value] && !is_exempt(text, pos);
    if (is_hit || begins_word(text, pos)) {
      const auto index = static_cast<char32_t>(indices_.at(c.value));
      append_utf8(marked, first_mark_ + index);
    } else {
      marked += text.substr(pos, c.size_bytes);
    }
    pos += c.size_bytes;
  }
  return marked;
}

MessageMarks::Unmarked MessageMarks::unmark(std::string_view rendered) const {
  Unmarked result;
  result.text.reserve(rendered.size());
  for (std::size_t pos = 0; pos < rendered.size();) {
    const CodePoint c = code_point_at(rendered, pos);
    const char32_t index = c.value - first_mark_;  // wraps to a large number below the first
    if (c.value < first_mark_ || index >= originals_.size()) {
      result.text += rendered.substr(pos, c.size_bytes);
      pos += c.size_bytes;
      continue;
    }
    const std::size_t begin = result.text.size();
    append_utf8(result.text, originals_[index]);
    if (!result.plain_ranges.empty() && result.plain_ranges.back().end == begin) {
      result.plain_ranges.back().end = result.text.size();
    } else {
      result.plain_ranges.push_back({begin, result.text.size()});
    }
    pos += c.size_bytes;
  }
  return result;
}

}  // namespace cicada::chat
