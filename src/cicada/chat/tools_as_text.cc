#include "cicada/chat/tools_as_text.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "cicada/chat/tool_json.h"
#include "cicada/json/writer.h"

namespace cicada::chat {
namespace {

constexpr std::string_view kIntroduction =
    "# Tools\n\n"
    "You may call functions to help with the user's request. Their signatures stand within "
    "<tools></tools>, one JSON object a line:\n"
    "<tools>\n";
constexpr std::string_view kInstruction =
    "</tools>\n\n"
    "To call a function, write a JSON object with its name and its arguments within "
    "<tool_call></tool_call>:\n"
    "<tool_call>\n"
    "{\"name\": <function-name>, \"arguments\": <arguments-object>}\n"
    "</tool_call>";

std::string unchanged(std::string_view text) { return std::string(text); }

Result<std::string> definitions(std::span<const Tool> tools) {
  std::string text(kIntroduction);
  for (const Tool& tool : tools) {
    CICADA_TRY(append_tool(text, tool, unchanged));
    text += '\n';
  }
  text += kInstruction;
  return text;
}

Result<std::string> with_calls(const Message& message) {
  std::string text = message.content;
  for (const ToolCall& call : message.tool_calls) {
    CICADA_ASSIGN(const json::Document arguments, parse_arguments(call));
    if (!text.empty()) text += '\n';
    text += "<tool_call>\n{\"name\": " + json::quote(call.name) + ", \"arguments\": ";
    append_json(text, arguments.root(), unchanged);
    text += "}\n</tool_call>";
  }
  return text;
}

}  // namespace

bool uses_tools(std::span<const Message> messages, std::span<const Tool> tools) {
  return !tools.empty() || std::ranges::any_of(messages, [](const Message& message) {
    return message.role == "tool" || !message.tool_calls.empty();
  });
}

Result<std::vector<Message>> tools_as_text(std::span<const Message> messages,
                                           std::span<const Tool> tools) {
  std::vector<Message> result;
  result.reserve(messages.size() + 1);
  if (!tools.empty()) {
    CICADA_ASSIGN(std::string text, definitions(tools));
    const bool has_system = !messages.empty() && messages.front().role == "system";
    if (has_system && !messages.front().content.empty()) {
      text.insert(0, messages.front().content + "\n\n");
    }
    result.push_back({"system", std::move(text)});
    if (has_system) messages = messages.subspan(1);
  }
  bool follows_a_result = false;  // results of one turn are one message
  for (const Message& message : messages) {
    const bool is_result = message.role == "tool";
    if (is_result) {
      std::string text = "<tool_response>\n" + message.content + "\n</tool_response>";
      if (follows_a_result) {
        result.back().content += '\n' + text;
      } else {
        result.push_back({"user", std::move(text)});
      }
    } else {
      CICADA_ASSIGN(std::string text, with_calls(message));
      result.push_back({message.role, std::move(text), message.thinking});
    }
    follows_a_result = is_result;
  }
  return result;
}

}  // namespace cicada::chat
