#include "cicada/api/openai_fields.h"

#include <array>
#include <limits>

#include "cicada/api/common_fields.h"

namespace cicada::api {
namespace {

constexpr std::size_t kMaxStops = 16;
constexpr std::string_view kUnconstrained =
    "answers of a given form are not available yet; leave it out";
constexpr std::string_view kNotAvailable = "is not available on this server; leave it out";

Parsed<void> refuse_response_format(const Fields& body) {
  const auto found = body.find("response_format");
  if (!found) return {};
  const Path path(body.path(), "response_format");
  CICADA_ASSIGN(const Fields format, Fields::of(*found, path));
  CICADA_ASSIGN(const std::string_view type, format.needed_text("type"));
  if (type == "text") return {};
  return format.refuse_field("type", "text: answers of a given form are not available yet");
}

Parsed<void> refuse_what_is_not_there(const Fields& body) {
  CICADA_TRY(refuse_response_format(body));
  static constexpr std::array<std::string_view, 5> kForms = {
      "structured_outputs", "guided_json", "guided_regex", "guided_choice", "guided_grammar"};
  for (const std::string_view key : kForms) CICADA_TRY(refuse_if_asked(body, key, kUnconstrained));
  static constexpr std::array<std::string_view, 8> kKeys = {
      "suffix",          "min_tokens",      "stop_token_ids",         "bad_words",
      "use_beam_search", "prompt_logprobs", "truncate_prompt_tokens", "web_search_options"};
  for (const std::string_view key : kKeys) CICADA_TRY(refuse_if_asked(body, key, kNotAvailable));
  return {};
}

Parsed<void> read_choices(const Fields& body, GenerateRequest& request) {
  CICADA_ASSIGN(const auto n, body.integer("n", {1, kMaxChoices}));
  if (n) request.n = static_cast<std::uint32_t>(*n);
  CICADA_ASSIGN(const auto best_of, body.integer("best_of", {0, kMaxChoices}));
  if (best_of && *best_of > static_cast<std::int64_t>(request.n)) {
    return body.refuse_field("best_of", "no more than n: choices are not ranked here");
  }
  return {};
}

Parsed<void> read_stream_options(const Fields& body, GenerateRequest& request) {
  const auto found = body.find("stream_options");
  if (!found) return {};
  const Path path(body.path(), "stream_options");
  CICADA_ASSIGN(const Fields options, Fields::of(*found, path));
  CICADA_ASSIGN(request.include_usage, options.boolean("include_usage", false));
  return {};
}

}  // namespace

Parsed<void> read_openai_common(const Fields& body, GenerateRequest& request) {
  CICADA_TRY(refuse_what_is_not_there(body));
  if (body.has("model")) {
    CICADA_ASSIGN(const std::string_view model, body.needed_name("model", kMaxNameBytes));
    request.model = model;
  }
  CICADA_ASSIGN(request.max_tokens, read_max_tokens(body, "max_tokens"));
  CICADA_ASSIGN(const auto newer, read_max_tokens(body, "max_completion_tokens"));
  if (newer) request.max_tokens = newer;
  CICADA_TRY(read_choices(body, request));
  CICADA_TRY(read_stop(body, "stop", kMaxStops, request));
  CICADA_ASSIGN(request.ignores_end, body.boolean("ignore_eos", false));
  CICADA_TRY(read_sampling(body, request));
  CICADA_TRY(read_stream(body, request));
  CICADA_TRY(read_stream_options(body, request));
  CICADA_ASSIGN(const auto user, body.text("user"));
  request.user = user.value_or("");
  // vLLM's lower numbers go first.
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  CICADA_ASSIGN(const auto priority, body.integer("priority", {-kMost, kMost}));
  request.priority = static_cast<std::int32_t>(-priority.value_or(0));
  return {};
}

Parsed<std::vector<std::int64_t>> read_token_ids(simdjson::dom::array list, const Path& path) {
  std::vector<std::int64_t> ids;
  ids.reserve(list.size());
  for (const json::Element element : list) {
    std::int64_t id = 0;
    if (element.get(id) != simdjson::SUCCESS) {
      return refuse(Path(path, ids.size()), element, "the number of a token");
    }
    ids.push_back(id);
  }
  return ids;
}

}  // namespace cicada::api
