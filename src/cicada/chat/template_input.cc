#include "cicada/chat/template_input.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "cicada/chat/utf8.h"
#include "cicada/json/writer.h"

namespace cicada::chat {
namespace {

// The same error, with what it is about in front of its own words.
tl::unexpected<Error> in(std::string_view what, const Error& error) {
  return fail(error.code(), "{}: {}", what, error.to_string());
}

Result<void> check_utf8(std::string_view text, std::string_view what) {
  if (const auto at = first_invalid_utf8(text)) {
    return fail(Code::kInvalidArgument, "{}: invalid UTF-8 at byte {}", what, *at);
  }
  return {};
}

// Collects the private-use characters of a checked object's strings.
void collect(json::Element object, std::string& private_use) {
  std::string unused;
  append_json(unused, object, [&](std::string_view text) {
    for (std::size_t pos = 0; pos < text.size();) {
      const CodePoint c = code_point_at(text, pos);
      if (c.value >= 0xF0000) private_use += text.substr(pos, c.size_bytes);
      pos += std::max<std::size_t>(c.size_bytes, 1);
    }
    return std::string();
  });
}

Result<void> check_message(const Message& message, std::string& private_use) {
  CICADA_TRY(check_utf8(message.content, "content"));
  CICADA_TRY(check_utf8(message.thinking, "thinking"));
  CICADA_TRY(check_utf8(message.tool_call_id, "tool_call_id"));
  for (std::size_t i = 0; i < message.tool_calls.size(); ++i) {
    const ToolCall& call = message.tool_calls[i];
    CICADA_TRY(check_utf8(call.id, fmt::format("tool call {}: id", i)));
    CICADA_TRY(check_utf8(call.name, fmt::format("tool call {}: name", i)));
    const auto arguments = parse_arguments(call);
    if (!arguments) return in(fmt::format("tool call {} ({})", i, call.name), arguments.error());
    collect(arguments->root(), private_use);
  }
  return {};
}

Result<void> check_tool(const Tool& tool, std::string& private_use) {
  CICADA_TRY(check_utf8(tool.description, "description"));
  CICADA_ASSIGN(const json::Document parameters, parse_parameters(tool));
  collect(parameters.root(), private_use);
  return {};
}

// An id as Mistral's templates want it.
std::string short_id(std::string_view id) {
  constexpr std::string_view kDigits =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  constexpr std::size_t kLength = 9;
  const auto is_digit = [&](char c) { return kDigits.find(c) != std::string_view::npos; };
  if (id.size() == kLength && std::ranges::all_of(id, is_digit)) return std::string(id);
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a
  for (const char c : id) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  std::string text;
  for (std::size_t i = 0; i < kLength; ++i, hash /= kDigits.size()) {
    text += kDigits[hash % kDigits.size()];
  }
  return text;
}

class VariablesWriter {
 public:
  VariablesWriter(const TemplateInput& input, const TextMap& map) : input_(input), map_(map) {}

  Result<std::string> write(const RenderOptions& options) {
    out_ = "{\"messages\": [";
    for (std::size_t i = 0; i < input_.messages.size(); ++i) {
      if (i > 0) out_ += ", ";
      CICADA_TRY(write_message(input_.messages[i]));
    }
    out_ += "], \"tools\": ";
    CICADA_TRY(write_tools());
    out_ += ", \"documents\": null, \"add_generation_prompt\": ";
    out_ += options.add_generation_prompt && !options.continue_last ? "true" : "false";
    if (options.enable_thinking) {
      out_ +=
          *options.enable_thinking ? ", \"enable_thinking\": true" : ", \"enable_thinking\": false";
    }
    out_ += ", \"bos_token\": " + json::quote(input_.bos);
    out_ += ", \"eos_token\": " + json::quote(input_.eos) + '}';
    return std::move(out_);
  }

 private:
  std::string id_of(std::string_view id) const {
    return input_.has_short_ids ? short_id(id) : std::string(id);
  }

  void member(std::string_view name, std::string_view text) {
    out_ += ", \"";
    out_ += name;
    out_ += "\": ";
    out_ += json::quote(map_(text));
  }

  Result<void> write_message(const Message& message) {
    out_ += "{\"role\": " + json::quote(map_(message.role));
    member("content", message.content);
    if (!message.thinking.empty()) member("reasoning_content", message.thinking);
    if (!message.tool_call_id.empty()) {
      member("tool_call_id", id_of(message.tool_call_id));
      const auto called = called_.find(message.tool_call_id);
      if (called != called_.end()) member("name", called->second);
    }
    if (!message.tool_calls.empty()) {
      out_ += ", \"tool_calls\": [";
      for (std::size_t i = 0; i < message.tool_calls.size(); ++i) {
        if (i > 0) out_ += ", ";
        CICADA_TRY(write_call(message.tool_calls[i]));
      }
      out_ += ']';
    }
    out_ += '}';
    return {};
  }

  Result<void> write_call(const ToolCall& call) {
    called_[call.id] = call.name;
    CICADA_ASSIGN(const json::Document arguments, parse_arguments(call));
    out_ += '{';
    if (!call.id.empty()) out_ += "\"id\": " + json::quote(map_(id_of(call.id))) + ", ";
    out_ += R"("type": "function", "function": {"name": )" + json::quote(map_(call.name));
    out_ += R"(, "arguments": )";
    append_json(out_, arguments.root(), map_);
    out_ += "}}";
    return {};
  }

  Result<void> write_tools() {
    if (input_.tools.empty()) {
      out_ += "null";
      return {};
    }
    const char* separator = "[";
    for (const Tool& tool : input_.tools) {
      out_ += separator;
      CICADA_TRY(append_tool(out_, tool, map_));
      separator = ", ";
    }
    out_ += ']';
    return {};
  }

  const TemplateInput& input_;
  const TextMap& map_;
  std::unordered_map<std::string_view, std::string_view> called_;  // names of calls by their ids
  std::string out_;
};

}  // namespace

Result<void> check_conversation(std::span<const Message> messages, std::span<const Tool> tools,
                                std::string& private_use) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    CICADA_TRY(check_utf8(messages[i].role, fmt::format("message {}: role", i)));
    const auto checked = check_message(messages[i], private_use);
    if (!checked) return in(fmt::format("message {} ({})", i, messages[i].role), checked.error());
  }
  for (std::size_t i = 0; i < tools.size(); ++i) {
    CICADA_TRY(check_utf8(tools[i].name, fmt::format("tool {}: name", i)));
    const auto checked = check_tool(tools[i], private_use);
    if (!checked) return in(fmt::format("tool {} ({})", i, tools[i].name), checked.error());
  }
  return {};
}

std::vector<std::string_view> texts_of(std::span<const Message> messages,
                                       std::span<const Tool> tools) {
  std::vector<std::string_view> texts;
  for (const Message& message : messages) {
    texts.insert(texts.end(),
                 {message.role, message.content, message.thinking, message.tool_call_id});
    for (const ToolCall& call : message.tool_calls) texts.insert(texts.end(), {call.id, call.name});
  }
  for (const Tool& tool : tools) texts.insert(texts.end(), {tool.name, tool.description});
  return texts;
}

Result<std::string> template_variables(const TemplateInput& input, const RenderOptions& options,
                                       const TextMap& map) {
  return VariablesWriter(input, map).write(options);
}

}  // namespace cicada::chat
