#include "cicada/chat/tool_json.h"

#include <array>
#include <charconv>

#include "cicada/json/writer.h"

namespace cicada::chat {
namespace {

template <typename T>
void append_number(std::string& out, T value) {
  std::array<char, 32> digits{};  // the longest double in shortest form has 24 characters
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  out.append(digits.data(), end);
}

// Stays a float for the reader: 1.0, not 1.
void append_float(std::string& out, double value) {
  const std::size_t begin = out.size();
  append_number(out, value);
  if (out.find_first_of(".e", begin) == std::string::npos) out += ".0";
}

void append_object(std::string& out, simdjson::dom::object object, const TextMap& map) {
  out += '{';
  const char* separator = "";
  for (const auto& member : object) {
    out += separator;
    out += json::quote(map(member.key));
    out += ": ";
    append_json(out, member.value, map);
    separator = ", ";
  }
  out += '}';
}

void append_array(std::string& out, simdjson::dom::array array, const TextMap& map) {
  out += '[';
  const char* separator = "";
  for (const json::Element element : array) {
    out += separator;
    append_json(out, element, map);
    separator = ", ";
  }
  out += ']';
}

}  // namespace

Result<json::Document> parse_object(std::string_view text, std::string_view if_empty,
                                    std::string_view what) {
  auto document = json::parse(text.empty() ? if_empty : text);
  if (!document) return fail(std::move(document).error().with_context(std::string(what)));
  CICADA_TRY(json::as_object(document->root(), what));
  return document;
}

Result<json::Document> parse_arguments(const ToolCall& call) {
  return parse_object(call.arguments, "{}", "arguments");
}

Result<json::Document> parse_parameters(const Tool& tool) {
  return parse_object(tool.parameters, R"({"type": "object", "properties": {}})", "parameters");
}

// The depth of `value` is bounded where it was parsed.
void append_json(std::string& out, json::Element value, const TextMap& map) {
  switch (value.type()) {
    case simdjson::dom::element_type::OBJECT:
      return append_object(out, value.get_object().value_unsafe(), map);
    case simdjson::dom::element_type::ARRAY:
      return append_array(out, value.get_array().value_unsafe(), map);
    case simdjson::dom::element_type::STRING:
      out += json::quote(map(value.get_string().value_unsafe()));
      return;
    case simdjson::dom::element_type::INT64:
      return append_number(out, value.get_int64().value_unsafe());
    case simdjson::dom::element_type::UINT64:
      return append_number(out, value.get_uint64().value_unsafe());
    case simdjson::dom::element_type::DOUBLE:
      return append_float(out, value.get_double().value_unsafe());
    case simdjson::dom::element_type::BOOL:
      out += value.get_bool().value_unsafe() ? "true" : "false";
      return;
    default:
      out += "null";
  }
}

Result<void> append_tool(std::string& out, const Tool& tool, const TextMap& map) {
  CICADA_ASSIGN(const json::Document parameters, parse_parameters(tool));
  out += R"({"type": "function", "function": {"name": )" + json::quote(map(tool.name));
  out += R"(, "description": )" + json::quote(map(tool.description));
  out += R"(, "parameters": )";
  append_json(out, parameters.root(), map);
  out += "}}";
  return {};
}

}  // namespace cicada::chat
