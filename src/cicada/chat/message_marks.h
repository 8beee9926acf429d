// Tells text of messages from text of the template in a rendered prompt, so that no message can
// write a control token.
//
// Every control token holds some punctuation ("<|im_end|>" begins with '<'). In what the template
// gets to see, each such character of a message is replaced by a private-use code point that stands
// for it: one character for one character, untouched by trimming, slicing, reversing, joining and
// changes of case. In the rendered text the marks become their characters again and their places
// are reported: a control token that overlaps one was written, at least in part, by a message.
// Two things stay unmarked because templates look for them in messages: literals such as "</think>"
// that stand in the template's own source and are no part of a control token, and anything without
// such characters ("user", "assistant"), from which a template may build tokens on purpose. Of
// control tokens without punctuation, each occurrence in a message is marked at its first
// character. Threads: read-only after construction.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "cicada/base/result.h"
#include "cicada/tokenizer/tokenizer.h"

namespace cicada::chat {

// "<…>" and "[…]" literals of at most 64 bytes in a template's source.
std::unordered_set<std::string> tag_literals(std::string_view source);

class MessageMarks {
 public:
  struct Unmarked {
    std::string text;
    std::vector<tokenizer::ByteRange> plain_ranges;  // bytes that were marked; ascending, disjoint
  };

  // `texts`: everything that will be marked or is in the template; marks are code points that none
  // of it holds. `literals` as of tag_literals(). The tokenizer must outlive the marks.
  // Errors: kInvalidArgument when the texts leave no private code points; kUnsupported when control
  // tokens without punctuation have more than 64 lengths (each costs a lookup at every character).
  static Result<MessageMarks> create(const tokenizer::Tokenizer& tokenizer,
                                     const std::unordered_set<std::string>& literals,
                                     const std::vector<std::string_view>& texts);

  // Precondition: valid UTF-8.
  std::string mark(std::string_view text) const;
  Unmarked unmark(std::string_view rendered) const;

 private:
  MessageMarks() = default;

  void add_control_tokens(const tokenizer::Tokenizer& tokenizer);
  Result<void> add_words();
  void add_exempt(const std::unordered_set<std::string>& literals);
  Result<void> choose_marks(const std::vector<std::string_view>& texts);
  std::size_t mark_index(char32_t original);
  bool is_exempt(std::string_view text, std::size_t pos) const;
  bool begins_word(std::string_view text, std::size_t pos) const;

  std::set<std::string_view> control_;       // texts of control tokens, views of the tokenizer
  std::array<bool, 128> is_marked_{};        // punctuation that every control token has some of …
  std::set<std::string_view> words_;         // … but these, of which each occurrence is marked
  std::vector<std::size_t> word_bytes_;      // the lengths among them, ascending
  std::unordered_set<std::string> exempt_;   // literals that stay unmarked
  std::vector<char32_t> originals_;          // mark first_mark_ + i stands for originals_[i]
  std::map<char32_t, std::size_t> indices_;  // the inverse
  char32_t first_mark_ = 0;
};

}  // namespace cicada::chat
