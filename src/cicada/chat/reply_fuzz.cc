// Fuzzes ReplyParser and StopMatcher: the first byte chooses the syntax, the second how the rest is
// split. Whole or in pieces, an answer is the same; and text without markers comes out as it is.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/base/check.h"
#include "cicada/chat/reply_for_test.h"
#include "cicada/chat/reply_parser.h"
#include "cicada/chat/stop_matcher.h"

namespace {

using cicada::chat::ReplySyntax;
using cicada::chat::StopMatcher;
using cicada::chat::ToolSyntax;

struct Stopped {
  std::string text;
  std::optional<std::size_t> matched;
  bool operator==(const Stopped&) const = default;
};

Stopped stopped(std::string_view text, std::size_t size) {
  StopMatcher matcher({"</tool_call>\n\n", "l>\n", "abab", "\"}}"});
  Stopped result;
  while (!text.empty() && !result.matched) {
    const std::string_view piece = text.substr(0, size);
    text.remove_prefix(piece.size());
    const StopMatcher::Piece out = matcher.add(piece);
    result.text += out.text;
    result.matched = out.matched;
  }
  if (!result.matched) result.text += matcher.finish();
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  ReplySyntax syntax;
  syntax.tools = static_cast<ToolSyntax>(data[0] & 3U);
  if ((data[0] & 4U) != 0) {
    syntax.think_open = "<think>";
    syntax.think_close = "</think>";
    syntax.begins_thinking = (data[0] & 8U) != 0;
  }
  const std::vector<std::size_t> sizes = {std::size_t{1} + (data[1] & 15U),
                                          std::size_t{1} + (data[1] >> 4U)};
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  const auto whole = cicada::chat::parse_reply(syntax, text);
  const auto split = cicada::chat::parse_reply(syntax, text, sizes);
  CICADA_CHECK(whole.pieces == split.pieces && whole.num_calls == split.num_calls,
               "pieces depend on how the text was split");
  if (syntax.tools == ToolSyntax::kNone && syntax.think_open.empty() && !text.empty()) {
    CICADA_CHECK(whole.pieces == "text(" + std::string(text) + ")", "text was changed");
  }
  CICADA_CHECK(stopped(text, text.size() + 1) == stopped(text, sizes[0]),
               "stops depend on how the text was split");
  return 0;
}
