// ReplySyntax: which syntax a template's model answers in.
#include "cicada/chat/call_form.h"
#include "cicada/chat/reply_parser.h"
#include "cicada/chat/template_source.h"

namespace cicada::chat {
namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

ToolSyntax tool_syntax(std::string_view source) {
  if (!reads_variable(source, "tools")) return ToolSyntax::kHermes;
  if (has(source, "<tool_call>")) return ToolSyntax::kHermes;
  if (has(source, "[TOOL_CALLS]")) return ToolSyntax::kMistral;
  if (has(source, kPythonTag) || has(source, "\"parameters\": ")) return ToolSyntax::kLlama3;
  return ToolSyntax::kNone;
}

}  // namespace

CallForm call_form(ToolSyntax syntax) {
  switch (syntax) {
    case ToolSyntax::kHermes:
      return {.open = "<tool_call>", .close = "</tool_call>"};
    case ToolSyntax::kLlama3:
      return {.open = kPythonTag, .separator = ';', .may_be_bare = true};
    case ToolSyntax::kMistral:
      return {.open = "[TOOL_CALLS]", .close = "]", .separator = ',', .is_list = true};
    case ToolSyntax::kNone:
      break;
  }
  return {};
}

ReplySyntax ReplySyntax::of(std::string_view template_source, bool offers_tools) {
  ReplySyntax syntax;
  if (offers_tools) syntax.tools = tool_syntax(template_source);
  constexpr std::string_view kThinkClose = "</think>";
  if (has(template_source, kThinkClose)) {
    syntax.think_open = "<think>";
    syntax.think_close = kThinkClose;
  }
  return syntax;
}

std::vector<std::string> ReplySyntax::markers() const {
  const CallForm form = call_form(tools);
  std::vector<std::string> texts;
  for (const std::string_view text :
       {std::string_view(think_open), std::string_view(think_close), form.open, form.close}) {
    if (text.size() > 1) texts.emplace_back(text);
  }
  return texts;
}

}  // namespace cicada::chat
