// Reading answers in tests: pieces joined again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cicada/chat/reply_parser.h"

namespace cicada::chat {

// Neighbours that say the same kind of thing, as one: what a client has in the end.
inline std::vector<ReplyPiece> joined(const std::vector<ReplyPiece>& pieces) {
  std::vector<ReplyPiece> result;
  for (const ReplyPiece& piece : pieces) {
    const bool joins = !result.empty() && result.back().kind == piece.kind &&
                       result.back().call == piece.call &&
                       piece.kind != ReplyPiece::Kind::kToolCall;
    if (joins) {
      result.back().text += piece.text;
    } else {
      result.push_back(piece);
    }
  }
  return result;
}

// Readable: "text(…)", "think(…)", "call0(name)", "args0(…)".
inline std::string written(const std::vector<ReplyPiece>& pieces) {
  std::string text;
  for (const ReplyPiece& piece : joined(pieces)) {
    const std::string call = std::to_string(piece.call);
    switch (piece.kind) {
      case ReplyPiece::Kind::kText:
        text += "text";
        break;
      case ReplyPiece::Kind::kThinking:
        text += "think";
        break;
      case ReplyPiece::Kind::kToolCall:
        text += "call" + call;
        break;
      case ReplyPiece::Kind::kToolArguments:
        text += "args" + call;
        break;
    }
    text += "(" + piece.text + ")";
  }
  return text;
}

struct ParsedReply {
  std::string pieces;
  std::uint32_t num_calls = 0;
};

// The answer in pieces of those sizes in turn; {} is one piece.
inline ParsedReply parse_reply(const ReplySyntax& syntax, std::string_view text,
                               const std::vector<std::size_t>& sizes = {}) {
  ReplyParser parser(syntax);
  std::vector<ReplyPiece> pieces;
  const auto take = [&pieces](const std::vector<ReplyPiece>& more) {
    pieces.insert(pieces.end(), more.begin(), more.end());
  };
  for (std::size_t i = 0; !text.empty(); ++i) {
    const std::size_t size = sizes.empty() ? text.size() : sizes[i % sizes.size()];
    const std::string_view piece = text.substr(0, size);
    take(parser.add(piece));
    text.remove_prefix(piece.size());
  }
  take(parser.finish());
  return {written(pieces), parser.num_calls()};
}

}  // namespace cicada::chat
