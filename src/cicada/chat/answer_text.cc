#include "cicada/chat/answer_text.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace cicada::chat {
namespace {

bool is_silent(const tokenizer::Tokenizer& tokenizer, TokenId id) {
  const tokenizer::TokenType type = tokenizer.type(id);
  return type == tokenizer::TokenType::kControl || type == tokenizer::TokenType::kUnknown;
}

std::vector<TokenId> silent_markers(const tokenizer::Tokenizer& tokenizer,
                                    const ReplySyntax& syntax) {
  std::vector<TokenId> ids;
  for (const std::string& text : syntax.markers()) {
    const TokenId id = tokenizer.find(text);
    if (tokenizer.contains(id) && is_silent(tokenizer, id)) ids.push_back(id);
  }
  return ids;
}

void append(std::vector<ReplyPiece>& pieces, std::vector<ReplyPiece> more) {
  std::ranges::move(more, std::back_inserter(pieces));
}

}  // namespace

AnswerText::AnswerText(const tokenizer::Tokenizer& tokenizer, std::optional<TokenId> previous,
                       std::vector<std::string> stops, ReplySyntax syntax)
    : detokenizer_(tokenizer, previous),
      stops_(std::move(stops)),
      tokenizer_(&tokenizer),
      markers_(silent_markers(tokenizer, syntax)),
      parser_(std::move(syntax)) {}

AnswerText::Update AnswerText::add(TokenId id) {
  Update update;
  if (std::ranges::find(markers_, id) == markers_.end()) {
    pass_on(detokenizer_.add(id), update);
    return update;
  }
  // The token itself gives nothing, but what follows it is a text of its own.
  std::string text = detokenizer_.finish();
  text += detokenizer_.add(id);
  text += tokenizer_->token_text(id);
  pass_on(text, update);
  return update;
}

AnswerText::Update AnswerText::finish() {
  Update update;
  if (!is_over_) pass_on(detokenizer_.finish(), update);
  if (!is_over_) append(update.pieces, parser_.add(stops_.finish()));
  append(update.pieces, parser_.finish());
  return update;
}

void AnswerText::pass_on(std::string_view text, Update& update) {
  StopMatcher::Piece piece = stops_.add(text);
  append(update.pieces, parser_.add(piece.text));
  update.matched_stop = piece.matched;
  is_over_ = piece.matched.has_value();
}

bool ends_in_thought(const ReplySyntax& syntax, const tokenizer::Tokenizer& tokenizer,
                     std::span<const TokenId> prompt) {
  if (syntax.think_open.empty()) return false;
  std::size_t begin = prompt.size();
  for (; begin > 0 && tokenizer.contains(prompt[begin - 1]); --begin) {
    const TokenId id = prompt[begin - 1];
    const std::string_view text = tokenizer.token_text(id);
    const bool is_tag = text == syntax.think_open || text == syntax.think_close;
    if (!is_tag && is_silent(tokenizer, id)) break;
  }
  const auto turn = prompt.subspan(begin);
  const std::string text = tokenizer.decode({turn.begin(), turn.end()}, true);
  const std::size_t opened = text.rfind(syntax.think_open);
  const std::size_t closed = text.rfind(syntax.think_close);
  return opened != std::string::npos && (closed == std::string::npos || closed < opened);
}

}  // namespace cicada::chat
