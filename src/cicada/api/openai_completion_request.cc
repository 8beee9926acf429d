#include <fmt/format.h>

#include "cicada/api/common_fields.h"
#include "cicada/api/openai.h"
#include "cicada/api/openai_fields.h"

namespace cicada::api {
namespace {

constexpr std::string_view kPromptWords =
    "a string, an array of token numbers, or an array of up to 128 of these";

Parsed<CompletionPrompt> ids_prompt(simdjson::dom::array list, const Path& path) {
  if (list.size() == 0) return refuse(path, "an empty array", kPromptWords);
  CICADA_ASSIGN(auto ids, read_token_ids(list, path));
  return CompletionPrompt{.text = {}, .ids = std::move(ids), .is_ids = true};
}

Parsed<CompletionPrompt> one_prompt(json::Element element, const Path& path) {
  if (element.is_string()) {
    return CompletionPrompt{.text = std::string(std::string_view(element)), .ids = {}};
  }
  CICADA_ASSIGN(const auto list, as_list(element, path, kPromptWords));
  return ids_prompt(list, path);
}

// Whether a list of prompts is one prompt of ids.
bool is_ids(simdjson::dom::array list) {
  if (list.size() == 0) return true;
  const json::Element first = *list.begin();
  return !first.is_string() && !first.is_array();
}

Parsed<void> read_prompts(const Fields& body, GenerateRequest& request) {
  const Path path(body.path(), "prompt");
  const auto found = body.find("prompt");
  if (!found) return refuse(path, "nothing", kPromptWords);
  simdjson::dom::array list;
  if (found->get(list) != simdjson::SUCCESS || is_ids(list)) {
    CICADA_ASSIGN(CompletionPrompt prompt, one_prompt(*found, path));
    request.prompts.push_back(std::move(prompt));
    return {};
  }
  if (list.size() > static_cast<std::size_t>(kMaxChoices)) {
    return refuse(path, fmt::format("{} prompts", list.size()), kPromptWords);
  }
  for (const json::Element element : list) {
    CICADA_ASSIGN(CompletionPrompt prompt, one_prompt(element, Path(path, request.prompts.size())));
    request.prompts.push_back(std::move(prompt));
  }
  return {};
}

Parsed<void> read_logprobs(const Fields& body, GenerateRequest& request) {
  CICADA_ASSIGN(const auto top, body.integer("logprobs", {0, 20}));
  if (!top) return {};
  if (request.echo) {
    return unavailable(Path(body.path(), "logprobs"),
                       "found with echo, allowed without: those of a prompt are not available");
  }
  request.wants_logprobs = true;
  request.top_logprobs = static_cast<std::uint32_t>(*top);
  return {};
}

}  // namespace

Parsed<GenerateRequest> parse_completions(std::string_view text, const json::Limits& limits) {
  CICADA_ASSIGN(const json::Document document, parse_body(text, limits));
  const Path root("");
  CICADA_ASSIGN(const Fields body, Fields::of(document.root(), root));
  GenerateRequest request;
  request.dialect = Dialect::kOpenAiCompletion;
  CICADA_TRY(read_openai_common(body, request));
  CICADA_TRY(read_prompts(body, request));
  const std::size_t choices = request.prompts.size() * request.n;
  if (choices > static_cast<std::size_t>(kMaxChoices)) {
    return refuse(Path(root, "n"), fmt::format("{} choices of all prompts", choices),
                  fmt::format("at most {}", kMaxChoices));
  }
  CICADA_ASSIGN(request.echo, body.boolean("echo", false));
  CICADA_TRY(read_logprobs(body, request));
  return request;
}

}  // namespace cicada::api
