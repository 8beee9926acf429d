// Cuts an answer, as its text comes, into thinking, text and tool calls.
//
// The syntax is the template's own: what it writes for an assistant's earlier calls and thoughts is
// what the model writes too. Nothing of the markers themselves is passed on, nor the whitespace
// around them; what may still become one is held back. What looks like a call and is none (no JSON,
// no name, unfinished, more than 1 MiB or 64 levels of arguments) is given as text, exactly as the
// model wrote it; markers in it are not looked at again.
//
// A call is passed on as soon as it is certain to be one, which is when its arguments begin. Where
// they turn out to be no JSON afterwards, or exceed those limits, what was passed on cannot be
// taken back: the call stays cut, is not counted by num_calls(), and the answer goes on as text
// from the byte that broke it. So it does when the answer ends inside of a call. A call whose
// object is whole counts, also where the model left out what closes it.
//
// The pieces, joined, do not depend on how the text was split.
// Threads: one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cicada::chat {

struct ReplyPiece {
  enum class Kind : std::uint8_t { kText, kThinking, kToolCall, kToolArguments };
  Kind kind = Kind::kText;
  std::string text;        // kToolCall: the name; kToolArguments: a piece of JSON
  std::uint32_t call = 0;  // of tool calls: from 0
};

enum class ToolSyntax : std::uint8_t {
  kNone,     // no calls are looked for
  kHermes,   // <tool_call>{"name": …, "arguments": {…}}</tool_call> (qwen2.5, smollm2, …)
  kLlama3,   // {"name": …, "parameters": {…}}, alone
  kMistral,  // [TOOL_CALLS][{"name": …, "arguments": {…}}, …]
};

struct ReplySyntax {
  ToolSyntax tools = ToolSyntax::kNone;
  std::string think_open;        // "<think>"; empty: the model does not think in tags
  std::string think_close;       // "</think>"
  bool begins_thinking = false;  // the prompt ends inside a thought already

  // By what the template's source holds. Tools are kNone unless `offers_tools`; a template that
  // reads no `tools` is served in kHermes (docs/chat-templates.md, "Tools").
  static ReplySyntax of(std::string_view template_source, bool offers_tools);

  // What opens and closes thoughts and calls, in this syntax.
  std::vector<std::string> markers() const;
};

class ReplyParser {
 public:
  explicit ReplyParser(ReplySyntax syntax);
  ~ReplyParser();
  ReplyParser(ReplyParser&&) noexcept;
  ReplyParser& operator=(ReplyParser&&) noexcept;

  std::vector<ReplyPiece> add(std::string_view text);
  // The end of the answer: what was held back. An unfinished call becomes text.
  // Nothing may be added afterwards.
  std::vector<ReplyPiece> finish();
  // Calls that were completed.
  std::uint32_t num_calls() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cicada::chat
