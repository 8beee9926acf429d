// The pieces of an answer as they are put together.
// Threads: one thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "cicada/chat/reply_parser.h"

namespace cicada::chat {

// Neighbours of one kind become one piece; empty ones are left out.
class ReplyPieces {
 public:
  void add(ReplyPiece::Kind kind, std::string_view text, std::uint32_t call = 0) {
    if (text.empty()) return;
    const bool joins = !pieces_.empty() && kind != ReplyPiece::Kind::kToolCall &&
                       pieces_.back().kind == kind && pieces_.back().call == call;
    if (!joins) pieces_.push_back({kind, {}, call});
    pieces_.back().text += text;
  }
  std::vector<ReplyPiece> take() { return std::exchange(pieces_, {}); }

 private:
  std::vector<ReplyPiece> pieces_;
};

}  // namespace cicada::chat
