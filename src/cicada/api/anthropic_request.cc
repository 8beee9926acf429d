#include <fmt/format.h>

#include <array>
#include <string>

#include "cicada/api/anthropic.h"
#include "cicada/api/anthropic_blocks.h"
#include "cicada/api/common_fields.h"
#include "cicada/json/writer.h"

namespace cicada::api {
namespace {

constexpr std::size_t kMaxStops = 64;
constexpr std::string_view kUnconstrained =
    "answers of a given form are not available yet; leave it out";

Parsed<void> read_messages(const Fields& body, CacheControls& controls,
                           Conversation& conversation) {
  const Path path(body.path(), "messages");
  const std::string allowed = fmt::format("an array of 1 to {} messages", kMaxMessages);
  const auto found = body.find("messages");
  if (!found) return refuse(path, "nothing", allowed);
  CICADA_ASSIGN(const auto list, as_list(*found, path, allowed));
  if (list.size() == 0) return refuse(path, "an empty array", allowed);
  if (list.size() > kMaxMessages) {
    return refuse(path, fmt::format("{} messages", list.size()), allowed);
  }
  static constexpr std::array<std::string_view, 3> kRoles = {"user", "assistant", "system"};
  std::size_t index = 0;
  for (const json::Element element : list) {
    const Path at(path, index++);
    CICADA_ASSIGN(const Fields message, Fields::of(element, at));
    CICADA_ASSIGN(const std::string_view role, message.needed_one_of("role", kRoles));
    const auto content = message.find("content");
    const Path content_path(at, "content");
    if (!content) return refuse(content_path, "nothing", "a string or an array of blocks");
    CICADA_TRY(read_content(*content, content_path, role, controls, conversation));
  }
  return {};
}

Parsed<chat::Tool> read_tool(const Fields& tool) {
  CICADA_ASSIGN(const auto type, tool.text("type"));
  if (type && *type != "custom") {
    return tool.refuse_field("type", "custom: this server has no tools of its own");
  }
  CICADA_ASSIGN(const std::string_view name, tool.needed_name("name", kMaxNameBytes));
  CICADA_ASSIGN(const auto description, tool.text("description"));
  const auto schema = tool.find("input_schema");
  const Path path(tool.path(), "input_schema");
  if (!schema) return refuse(path, "nothing", "an object");
  if (!schema->is_object()) return refuse(path, *schema, "an object");
  return chat::Tool{std::string(name), std::string(description.value_or("")),
                    simdjson::minify(*schema)};
}

// Returns whether one of them carries a cache mark, and then, whether for an hour.
Parsed<std::optional<bool>> read_tools(const Fields& body, CacheControls& controls,
                                       GenerateRequest& request) {
  std::optional<bool> mark;
  CICADA_ASSIGN(const auto list, body.list("tools", "an array of tools"));
  if (!list) return mark;
  const Path path(body.path(), "tools");
  if (list->size() > kMaxTools) {
    return refuse(path, fmt::format("{} tools", list->size()),
                  fmt::format("at most {}", kMaxTools));
  }
  std::size_t index = 0;
  for (const json::Element element : *list) {
    const Path at(path, index++);
    CICADA_ASSIGN(const Fields fields, Fields::of(element, at));
    CICADA_ASSIGN(chat::Tool tool, read_tool(fields));
    request.tools.push_back(std::move(tool));
    CICADA_ASSIGN(const auto control, controls.read(fields));
    if (control) mark = mark.value_or(false) || *control;
  }
  return mark;
}

Parsed<void> read_tool_choice(const Fields& body, GenerateRequest& request) {
  const auto found = body.find("tool_choice");
  if (!found) return {};
  const Path path(body.path(), "tool_choice");
  CICADA_ASSIGN(const Fields choice, Fields::of(*found, path));
  static constexpr std::array<std::string_view, 4> kTypes = {"auto", "any", "tool", "none"};
  CICADA_TRY(choice.needed_text("type"));
  CICADA_ASSIGN(const auto type, choice.one_of("type", kTypes));
  CICADA_ASSIGN(request.is_one_call_at_most, choice.boolean("disable_parallel_tool_use", false));
  if (type == "any" || type == "tool") {
    return unavailable(Path(path, "type"),
                       fmt::format("found \"{}\", allowed auto, none: a forced call is not "
                                   "available yet",
                                   *type));
  }
  if (type == "none") request.tools.clear();
  return {};
}

Parsed<void> read_thinking(const Fields& body, GenerateRequest& request) {
  const auto found = body.find("thinking");
  if (!found) return {};
  const Path path(body.path(), "thinking");
  CICADA_ASSIGN(const Fields thinking, Fields::of(*found, path));
  static constexpr std::array<std::string_view, 3> kTypes = {"enabled", "disabled", "adaptive"};
  static constexpr std::array<std::string_view, 2> kDisplays = {"summarized", "omitted"};
  CICADA_TRY(thinking.needed_text("type"));
  CICADA_ASSIGN(const auto type, thinking.one_of("type", kTypes));
  CICADA_ASSIGN(const auto display, thinking.one_of("display", kDisplays));
  CICADA_TRY(read_max_tokens(thinking, "budget_tokens"));
  if (type != "adaptive") request.is_thinking = type == "enabled";
  request.hides_thinking = display == "omitted";
  return {};
}

Parsed<void> read_metadata(const Fields& body, GenerateRequest& request) {
  const auto found = body.find("metadata");
  if (!found) return {};
  const Path path(body.path(), "metadata");
  CICADA_ASSIGN(const Fields metadata, Fields::of(*found, path));
  CICADA_ASSIGN(const auto user, metadata.text("user_id"));
  request.user = user.value_or("");
  return {};
}

// What cannot be met. The client's tool runner falls back to sending the whole history when it
// reads the details of a refused thread; ignored, it would go on without its history.
Parsed<void> refuse_what_is_not_there(const Fields& body) {
  if (body.has("thread")) {
    ApiError error = make_api_error(400,
                                    "thread: this server holds no threads; send the whole "
                                    "conversation in messages",
                                    {}, "thread");
    error.details_code = "thread_unsupported_request";
    return fail(std::move(error));
  }
  if (const auto found = body.find("output_config")) {
    const Path path(body.path(), "output_config");
    CICADA_ASSIGN(const Fields config, Fields::of(*found, path));
    if (config.has("format")) return unavailable(Path(path, "format"), kUnconstrained);
  }
  CICADA_TRY(refuse_if_asked(body, "output_format", kUnconstrained));
  return refuse_if_asked(body, "mcp_servers", "this server connects to no others; leave it out");
}

Parsed<void> read_conversation(const Fields& body, GenerateRequest& request) {
  CacheControls controls;
  Conversation conversation(request);
  if (const auto system = body.find("system")) {
    CICADA_TRY(read_system(*system, Path(body.path(), "system"), controls, conversation));
  }
  CICADA_TRY(read_messages(body, controls, conversation));
  CICADA_ASSIGN(const auto last, controls.read(body));
  if (last) conversation.mark(*last);
  // Templates write the tools where they please before the first answer, mostly with the first
  // message: a prefix that ends with it holds them.
  CICADA_ASSIGN(const auto tools, read_tools(body, controls, request));
  if (tools) {
    auto& marks = request.cache_marks;
    if (marks.empty() || marks.front().message != 0) marks.insert(marks.begin(), CacheMark{});
    marks.front().is_one_hour = marks.front().is_one_hour || *tools;
  }
  const chat::Message& message = request.messages.back();
  request.continues_last = message.role == "assistant";
  if (request.continues_last && !message.tool_calls.empty()) {
    return unavailable(Path(body.path(), "messages"),
                       "the last one calls tools; allowed is one with their tool_result blocks "
                       "behind it");
  }
  return {};
}

Parsed<void> read_body(const Fields& body, GenerateRequest& request) {
  CICADA_TRY(refuse_what_is_not_there(body));
  CICADA_ASSIGN(const std::string_view model, body.needed_name("model", kMaxNameBytes));
  request.model = model;
  CICADA_TRY(read_conversation(body, request));
  CICADA_TRY(read_tool_choice(body, request));
  CICADA_TRY(read_thinking(body, request));
  CICADA_TRY(read_metadata(body, request));
  CICADA_TRY(read_stop(body, "stop_sequences", kMaxStops, request));
  CICADA_TRY(read_sampling(body, request));
  return read_stream(body, request);
}

Parsed<GenerateRequest> parse(std::string_view text, const json::Limits& limits,
                              bool needs_max_tokens) {
  CICADA_ASSIGN(const json::Document document, parse_body(text, limits));
  const Path root("");
  CICADA_ASSIGN(const Fields body, Fields::of(document.root(), root));
  GenerateRequest request;
  request.dialect = Dialect::kAnthropic;
  CICADA_TRY(read_body(body, request));
  CICADA_ASSIGN(request.max_tokens, read_max_tokens(body, "max_tokens"));
  if (needs_max_tokens && !request.max_tokens) {
    return refuse(Path(root, "max_tokens"), "nothing", "an integer of at least 1");
  }
  return request;
}

}  // namespace

Parsed<GenerateRequest> parse_messages(std::string_view body, const json::Limits& limits) {
  return parse(body, limits, true);
}

Parsed<GenerateRequest> parse_count_tokens(std::string_view body, const json::Limits& limits) {
  return parse(body, limits, false);
}

std::string count_tokens_body(std::uint64_t input_tokens) {
  json::Writer writer;
  writer.begin_object().field("input_tokens", input_tokens).end_object();
  return writer.take();
}

}  // namespace cicada::api
