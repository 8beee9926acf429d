#include "cicada/api/anthropic_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "cicada/api/common_fields.h"

namespace cicada::api {
namespace {

constexpr std::size_t kMaxControls = 4;
constexpr std::string_view kContentWords = "a string or an array of blocks";
constexpr std::string_view kBillingHeader = "x-anthropic-billing-header";

// Claude Code's first system block holds a hash that differs in every request, and with it no
// prompt would ever be found in the cache. The model has no use for it.
std::string without_billing_hash(std::string_view text) {
  constexpr std::string_view kKey = "cch=";
  const std::size_t key = text.starts_with(kBillingHeader) ? text.find(kKey) : text.npos;
  if (key == text.npos) return std::string(text);
  const std::size_t value = key + kKey.size();
  const std::size_t end = std::min(text.find_first_of("; ,\t\r\n", value), text.size());
  return std::string(text.substr(0, value)) + '0' + std::string(text.substr(end));
}

// What a kind of block needs, once its type is known.
struct BlockPlace {
  std::string_view role;
  CacheControls& controls;
  Conversation& conversation;
};

std::string_view allowed_blocks(std::string_view role) {
  if (role == "user") return "text, tool_result";
  if (role == "assistant") return "text, tool_use, thinking, redacted_thinking";
  return "text";
}

bool is_known_block(std::string_view type) {
  constexpr std::array<std::string_view, 5> kTypes = {"text", "tool_result", "tool_use", "thinking",
                                                      "redacted_thinking"};
  return std::ranges::find(kTypes, type) != kTypes.end();
}

Parsed<void> refuse_block(const Fields& block, std::string_view type, std::string_view allowed) {
  const Path path(block.path(), "type");
  const std::string found = quoted(type);
  if (is_known_block(type)) return refuse(path, found + " here", allowed);
  return refuse(path, found, fmt::format("{}: this server reads text alone", allowed));
}

// Text of a tool's result: a string, or text blocks.
Parsed<void> read_result_text(json::Element content, const Path& path, const BlockPlace& place,
                              chat::Message& message) {
  if (content.is_string()) {
    append_block(message, std::string_view(content));
    return {};
  }
  CICADA_ASSIGN(const auto list, as_list(content, path, kContentWords));
  std::size_t index = 0;
  for (const json::Element element : list) {
    const Path at(path, index++);
    CICADA_ASSIGN(const Fields block, Fields::of(element, at));
    CICADA_ASSIGN(const std::string_view type, block.needed_text("type"));
    if (type != "text") return refuse_block(block, type, "text");
    CICADA_ASSIGN(const std::string_view text, block.needed_text("text"));
    append_block(message, text);
    CICADA_ASSIGN(const auto control, place.controls.read(block));
    if (control) place.conversation.mark(*control);
  }
  return {};
}

Parsed<void> read_tool_result(const Fields& block, const BlockPlace& place) {
  CICADA_ASSIGN(const std::string_view id, block.needed_name("tool_use_id", kMaxNameBytes));
  CICADA_ASSIGN(const bool is_error, block.boolean("is_error", false));
  chat::Message& message = place.conversation.tool_result(id);
  const auto content = block.find("content");
  if (content) {
    CICADA_TRY(read_result_text(*content, Path(block.path(), "content"), place, message));
  }
  // Templates know no failed results: the model has to read it.
  if (is_error) message.content.insert(0, "Error: ");
  return {};
}

Parsed<void> read_tool_use(const Fields& block, const BlockPlace& place) {
  CICADA_ASSIGN(const std::string_view id, block.needed_name("id", kMaxNameBytes));
  CICADA_ASSIGN(const std::string_view name, block.needed_name("name", kMaxNameBytes));
  const auto input = block.find("input");
  const Path path(block.path(), "input");
  if (!input) return refuse(path, "nothing", "an object");
  if (!input->is_object()) return refuse(path, *input, "an object");
  place.conversation.turn(place.role)
      .tool_calls.push_back({std::string(id), std::string(name), simdjson::minify(*input)});
  return {};
}

Parsed<void> read_block(const Fields& block, const BlockPlace& place) {
  CICADA_ASSIGN(const std::string_view type, block.needed_text("type"));
  const bool is_assistant = place.role == "assistant";
  if (type == "text") {
    CICADA_ASSIGN(const std::string_view text, block.needed_text("text"));
    place.conversation.add_text(place.role, text);
  } else if (type == "tool_result" && place.role == "user") {
    CICADA_TRY(read_tool_result(block, place));
  } else if (type == "tool_use" && is_assistant) {
    CICADA_TRY(read_tool_use(block, place));
  } else if (type == "thinking" && is_assistant) {
    CICADA_ASSIGN(const std::string_view text, block.needed_text("thinking"));
    place.conversation.turn(place.role).thinking += text;
  } else if (type == "redacted_thinking" && is_assistant) {
    place.conversation.turn(place.role);
  } else {
    return refuse_block(block, type, allowed_blocks(place.role));
  }
  CICADA_ASSIGN(const auto control, place.controls.read(block));
  if (control) place.conversation.mark(*control);
  return {};
}

}  // namespace

Parsed<std::optional<bool>> CacheControls::read(const Fields& holder) {
  const auto found = holder.find("cache_control");
  if (!found) return std::nullopt;
  const Path path(holder.path(), "cache_control");
  CICADA_ASSIGN(const Fields control, Fields::of(*found, path));
  static constexpr std::array<std::string_view, 1> kTypes = {"ephemeral"};
  static constexpr std::array<std::string_view, 2> kTimes = {"5m", "1h"};
  CICADA_TRY(control.needed_text("type"));
  CICADA_TRY(control.one_of("type", kTypes));
  CICADA_ASSIGN(const auto ttl, control.one_of("ttl", kTimes));
  if (++count_ > kMaxControls) {
    return refuse(path, fmt::format("{} of them", count_), fmt::format("at most {}", kMaxControls));
  }
  return ttl == "1h";
}

Parsed<void> read_system(json::Element system, const Path& path, CacheControls& controls,
                         Conversation& conversation) {
  if (system.is_string()) {
    conversation.add_text("system", without_billing_hash(std::string_view(system)));
    return {};
  }
  CICADA_ASSIGN(const auto list, as_list(system, path, "a string or an array of text blocks"));
  std::size_t index = 0;
  for (const json::Element element : list) {
    const bool is_first = index == 0;
    const Path at(path, index++);
    CICADA_ASSIGN(const Fields block, Fields::of(element, at));
    CICADA_ASSIGN(const std::string_view type, block.needed_text("type"));
    if (type != "text") return refuse_block(block, type, "text");
    CICADA_ASSIGN(const std::string_view text, block.needed_text("text"));
    conversation.add_text("system", is_first ? without_billing_hash(text) : std::string(text));
    CICADA_ASSIGN(const auto control, controls.read(block));
    if (control) conversation.mark(*control);
  }
  return {};
}

Parsed<void> read_content(json::Element content, const Path& path, std::string_view role,
                          CacheControls& controls, Conversation& conversation) {
  if (content.is_string()) {
    conversation.add_text(role, std::string_view(content));
    return {};
  }
  CICADA_ASSIGN(const auto list, as_list(content, path, kContentWords));
  if (list.size() == 0) conversation.turn(role);
  const BlockPlace place{role, controls, conversation};
  std::size_t index = 0;
  for (const json::Element element : list) {
    const Path at(path, index++);
    CICADA_ASSIGN(const Fields block, Fields::of(element, at));
    CICADA_TRY(read_block(block, place));
  }
  return {};
}

}  // namespace cicada::api
