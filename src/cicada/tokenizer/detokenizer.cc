#include "cicada/tokenizer/tokenizer.h"
#include "cicada/tokenizer/unicode.h"

namespace cicada::tokenizer {

std::string Detokenizer::add(TokenId id) {
  if (!tokenizer_->contains(id)) return {};
  std::string_view piece = tokenizer_->piece_bytes(id);
  if (tokenizer_->adds_space_after(previous_) && tokenizer_->type(id) != TokenType::kUserDefined &&
      piece.starts_with(' ')) {
    piece.remove_prefix(1);
  }
  previous_ = id;
  held_.append(piece);
  std::string text;
  std::size_t pos = 0;
  while (pos < held_.size()) {
    const Utf8Step step = utf8_step(held_, pos);
    if (step.state == Utf8State::kTruncated) break;
    text.append(step.state == Utf8State::kValid
                    ? std::string_view(held_).substr(pos, step.size_bytes)
                    : kReplacementUtf8);
    pos += step.size_bytes;
  }
  held_.erase(0, pos);
  return text;
}

std::string Detokenizer::finish() {
  if (held_.empty()) return {};
  held_.clear();
  return std::string(kReplacementUtf8);
}

}  // namespace cicada::tokenizer
