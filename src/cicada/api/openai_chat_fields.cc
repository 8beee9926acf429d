// The conversation of a chat completion: messages, tools, and what is said about them.
#include <fmt/format.h>

#include <array>
#include <string>

#include "cicada/api/common_fields.h"
#include "cicada/api/limits.h"
#include "cicada/api/openai_fields.h"

namespace cicada::api {
namespace {

// A string or text parts, joined with newlines.
Parsed<std::string> read_content(json::Element content, const Path& path) {
  if (content.is_string()) return std::string(std::string_view(content));
  CICADA_ASSIGN(const auto list, as_list(content, path, "a string or an array of text parts"));
  std::string joined;
  std::size_t index = 0;
  for (const json::Element element : list) {
    if (index > 0) joined += '\n';
    const Path at(path, index++);
    CICADA_ASSIGN(const Fields part, Fields::of(element, at));
    CICADA_ASSIGN(const std::string_view type, part.needed_text("type"));
    if (type != "text" && type != "refusal") {
      return part.refuse_field("type", "text: this server reads text alone");
    }
    CICADA_ASSIGN(const std::string_view text, part.needed_text(type));
    joined += text;
  }
  return joined;
}

// The JSON text of an object, from a string that holds it (empty: no arguments) or the object.
Parsed<std::string> read_arguments(const Fields& function) {
  const auto found = function.find("arguments");
  if (!found) return std::string("{}");
  if (found->is_object()) return simdjson::minify(*found);
  const Path path(function.path(), "arguments");
  CICADA_ASSIGN(const std::string_view text, as_text(*found, path));
  if (text.empty()) return std::string("{}");
  const auto document = json::parse(text, kBodyLimits);
  if (!document || !document->root().is_object()) {
    return refuse(path, *found, "the JSON text of an object");
  }
  return std::string(text);
}

Parsed<chat::ToolCall> read_call(const Fields& call) {
  static constexpr std::array<std::string_view, 1> kTypes = {"function"};
  CICADA_TRY(call.one_of("type", kTypes));
  CICADA_ASSIGN(const auto id, call.text("id"));
  const auto found = call.find("function");
  const Path path(call.path(), "function");
  if (!found) return refuse(path, "nothing", "an object");
  CICADA_ASSIGN(const Fields function, Fields::of(*found, path));
  CICADA_ASSIGN(const std::string_view name, function.needed_name("name", kMaxNameBytes));
  CICADA_ASSIGN(std::string arguments, read_arguments(function));
  return chat::ToolCall{std::string(id.value_or("")), std::string(name), std::move(arguments)};
}

// What only the assistant's messages have.
Parsed<void> read_assistant(const Fields& from, chat::Message& message) {
  for (const std::string_view key : {"reasoning_content", "reasoning"}) {
    CICADA_ASSIGN(const auto thinking, from.text(key));
    if (thinking && message.thinking.empty()) message.thinking = *thinking;
  }
  CICADA_ASSIGN(const auto calls, from.list("tool_calls", "an array of calls"));
  if (!calls) return {};
  const Path path(from.path(), "tool_calls");
  for (const json::Element element : *calls) {
    const Path at(path, message.tool_calls.size());
    CICADA_ASSIGN(const Fields fields, Fields::of(element, at));
    CICADA_ASSIGN(chat::ToolCall call, read_call(fields));
    message.tool_calls.push_back(std::move(call));
  }
  return {};
}

Parsed<chat::Message> read_message(const Fields& from) {
  static constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user",
                                                             "assistant", "tool"};
  CICADA_ASSIGN(const std::string_view role, from.needed_one_of("role", kRoles));
  chat::Message message{.role = std::string(role == "developer" ? "system" : role), .content = {}};
  if (role == "assistant") CICADA_TRY(read_assistant(from, message));
  if (role == "tool") {
    CICADA_ASSIGN(const auto id, from.text("tool_call_id"));
    message.tool_call_id = id.value_or("");
  }
  const auto content = from.find("content");
  const Path path(from.path(), "content");
  if (content) {
    CICADA_ASSIGN(message.content, read_content(*content, path));
  } else if (message.tool_calls.empty()) {
    return refuse(path, "nothing", "a string or an array of text parts");
  }
  return message;
}

Parsed<void> read_messages(const Fields& body, GenerateRequest& request) {
  const Path path(body.path(), "messages");
  const std::string allowed = fmt::format("an array of 1 to {} messages", kMaxMessages);
  const auto found = body.find("messages");
  if (!found) return refuse(path, "nothing", allowed);
  CICADA_ASSIGN(const auto list, as_list(*found, path, allowed));
  if (list.size() == 0) return refuse(path, "an empty array", allowed);
  if (list.size() > kMaxMessages) {
    return refuse(path, fmt::format("{} messages", list.size()), allowed);
  }
  for (const json::Element element : list) {
    const Path at(path, request.messages.size());
    CICADA_ASSIGN(const Fields fields, Fields::of(element, at));
    CICADA_ASSIGN(chat::Message message, read_message(fields));
    request.messages.push_back(std::move(message));
  }
  return {};
}

Parsed<chat::Tool> read_tool(const Fields& tool) {
  static constexpr std::array<std::string_view, 1> kTypes = {"function"};
  CICADA_TRY(tool.needed_text("type"));
  CICADA_TRY(tool.one_of("type", kTypes));
  const auto found = tool.find("function");
  const Path path(tool.path(), "function");
  if (!found) return refuse(path, "nothing", "an object");
  CICADA_ASSIGN(const Fields function, Fields::of(*found, path));
  CICADA_ASSIGN(const std::string_view name, function.needed_name("name", kMaxNameBytes));
  CICADA_ASSIGN(const auto description, function.text("description"));
  chat::Tool out{std::string(name), std::string(description.value_or("")), {}};
  const auto parameters = function.find("parameters");
  if (!parameters) return out;
  if (!parameters->is_object()) return refuse(Path(path, "parameters"), *parameters, "an object");
  out.parameters = simdjson::minify(*parameters);
  return out;
}

Parsed<void> read_tools(const Fields& body, GenerateRequest& request) {
  CICADA_ASSIGN(const auto list, body.list("tools", "an array of tools"));
  if (!list) return {};
  const Path path(body.path(), "tools");
  if (list->size() > kMaxTools) {
    return refuse(path, fmt::format("{} tools", list->size()),
                  fmt::format("at most {}", kMaxTools));
  }
  for (const json::Element element : *list) {
    const Path at(path, request.tools.size());
    CICADA_ASSIGN(const Fields fields, Fields::of(element, at));
    CICADA_ASSIGN(chat::Tool tool, read_tool(fields));
    request.tools.push_back(std::move(tool));
  }
  return {};
}

Parsed<void> read_tool_choice(const Fields& body, GenerateRequest& request) {
  CICADA_ASSIGN(const bool is_parallel, body.boolean("parallel_tool_calls", true));
  request.is_one_call_at_most = !is_parallel;
  const auto found = body.find("tool_choice");
  if (!found) return {};
  std::string_view word;
  if (found->get(word) == simdjson::SUCCESS && word == "auto") return {};
  if (word == "none") {
    request.tools.clear();
    return {};
  }
  return refuse(Path(body.path(), "tool_choice"), *found,
                "auto, none: a forced call is not available yet");
}

// The calls of before there were tools.
Parsed<void> refuse_old_functions(const Fields& body) {
  const auto call = body.find("function_call");
  std::string_view word;
  if (call && call->get(word) == simdjson::SUCCESS && word == "none") return {};
  CICADA_TRY(refuse_if_asked(body, "functions", "is not available; use tools"));
  return refuse_if_asked(body, "function_call", "is not available; use tool_choice");
}

Parsed<void> refuse_other_modalities(const Fields& body) {
  CICADA_ASSIGN(const auto list, body.list("modalities", "an array of strings"));
  if (!list) return {};
  const Path path(body.path(), "modalities");
  std::size_t index = 0;
  for (const json::Element element : *list) {
    const Path at(path, index++);
    CICADA_ASSIGN(const std::string_view word, as_text(element, at));
    if (word != "text") return refuse(at, element, "text");
  }
  return {};
}

Parsed<void> read_template_options(const Fields& body, GenerateRequest& request) {
  if (const auto found = body.find("chat_template_kwargs")) {
    const Path path(body.path(), "chat_template_kwargs");
    CICADA_ASSIGN(const Fields options, Fields::of(*found, path));
    if (options.has("enable_thinking")) {
      CICADA_ASSIGN(request.is_thinking, options.boolean("enable_thinking", true));
    }
  }
  CICADA_ASSIGN(request.continues_last, body.boolean("continue_final_message", false));
  const chat::Message& last = request.messages.back();
  if (request.continues_last && (last.role != "assistant" || !last.tool_calls.empty())) {
    return unavailable(Path(body.path(), "continue_final_message"),
                       "found true, allowed where the last message is an assistant's text");
  }
  return {};
}

}  // namespace

Parsed<void> read_openai_chat(const Fields& body, GenerateRequest& request) {
  CICADA_TRY(read_messages(body, request));
  CICADA_TRY(read_tools(body, request));
  CICADA_TRY(read_tool_choice(body, request));
  CICADA_TRY(refuse_old_functions(body));
  CICADA_TRY(refuse_other_modalities(body));
  return read_template_options(body, request);
}

}  // namespace cicada::api
