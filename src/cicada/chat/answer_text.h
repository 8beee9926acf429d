// The text of one choice, from its tokens to what clients get: characters, then stop strings, then
// thinking, text and calls.
//
// Stop strings are looked for in the answer as the model writes it, markers, thoughts and calls
// included: where one begins, the answer ends. So one that stands in a thought or a call cuts it.
// Control tokens write nothing, but those that are markers of the syntax ("[TOOL_CALLS]" is one
// token) count as their text.
// Threads: one thread. Lifetime: borrows the tokenizer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cicada/base/ids.h"
#include "cicada/chat/reply_parser.h"
#include "cicada/chat/stop_matcher.h"
#include "cicada/tokenizer/tokenizer.h"

namespace cicada::chat {

class AnswerText {
 public:
  // `previous`: the prompt's last token where the answer goes on with its text, as of Detokenizer.
  // `stops`: as of StopMatcher.
  AnswerText(const tokenizer::Tokenizer& tokenizer, std::optional<TokenId> previous,
             std::vector<std::string> stops, ReplySyntax syntax);

  struct Update {
    std::vector<ReplyPiece> pieces;
    std::optional<std::size_t> matched_stop;  // index of the stop string that ended the answer
  };
  // What became certain with this token. With a matched stop the answer is over: finish() gives
  // what is left of it. Precondition: nothing has matched.
  Update add(TokenId id);
  // The end of the answer: what was held back. Half a character at its end may still complete a
  // stop string.
  Update finish();

  // Calls that were completed.
  std::uint32_t num_calls() const { return parser_.num_calls(); }

 private:
  void pass_on(std::string_view text, Update& update);

  tokenizer::Detokenizer detokenizer_;
  StopMatcher stops_;
  const tokenizer::Tokenizer* tokenizer_;
  std::vector<TokenId> markers_;  // control tokens that write their text
  ReplyParser parser_;
  bool is_over_ = false;  // a stop string has matched
};

// Whether a prompt ends inside a thought: what its last control token opened holds a think_open
// that nothing closes ("<|im_start|>assistant\n<think>\n"). For ReplySyntax::begins_thinking.
bool ends_in_thought(const ReplySyntax& syntax, const tokenizer::Tokenizer& tokenizer,
                     std::span<const TokenId> prompt);

}  // namespace cicada::chat
