#include "cicada/api/common_fields.h"
#include "cicada/api/openai.h"
#include "cicada/api/openai_fields.h"

namespace cicada::api {
namespace {

Parsed<void> read_logprobs(const Fields& body, GenerateRequest& request) {
  CICADA_ASSIGN(request.wants_logprobs, body.boolean("logprobs", false));
  CICADA_ASSIGN(const auto top, body.integer("top_logprobs", {0, 20}));
  if (top.value_or(0) > 0 && !request.wants_logprobs) {
    return body.refuse_field("top_logprobs", "0 unless logprobs is true");
  }
  request.top_logprobs = static_cast<std::uint32_t>(top.value_or(0));
  return {};
}

}  // namespace

Parsed<GenerateRequest> parse_chat_completions(std::string_view text, const json::Limits& limits) {
  CICADA_ASSIGN(const json::Document document, parse_body(text, limits));
  const Path root("");
  CICADA_ASSIGN(const Fields body, Fields::of(document.root(), root));
  GenerateRequest request;
  request.dialect = Dialect::kOpenAiChat;
  CICADA_TRY(read_openai_common(body, request));
  CICADA_TRY(read_openai_chat(body, request));
  CICADA_TRY(read_logprobs(body, request));
  return request;
}

}  // namespace cicada::api
