#include "cicada/api/common_fields.h"
#include "cicada/api/openai.h"
#include "cicada/api/openai_fields.h"
#include "cicada/json/writer.h"

namespace cicada::api {
namespace {

Parsed<std::string> read_model(const Fields& body) {
  if (!body.has("model")) return std::string();
  CICADA_ASSIGN(const std::string_view model, body.needed_name("model", kMaxNameBytes));
  return std::string(model);
}

// vLLM's chats add no special tokens of their own: the template does. llama-server's texts have
// none unless asked for.
Parsed<void> read_text_or_chat(const Fields& body, TokenizeRequest& out) {
  if (body.has("messages")) {
    out.is_chat = true;
    out.request.dialect = Dialect::kOpenAiChat;
    CICADA_TRY(read_openai_chat(body, out.request));
    CICADA_ASSIGN(out.add_special_tokens, body.boolean("add_special_tokens", false));
    CICADA_ASSIGN(out.request.opens_answer,
                  body.boolean("add_generation_prompt", !out.request.continues_last));
    if (out.request.opens_answer && out.request.continues_last) {
      return unavailable(Path(body.path(), "add_generation_prompt"),
                         "found true, allowed without continue_final_message");
    }
    return {};
  }
  out.request.dialect = Dialect::kOpenAiCompletion;
  const bool is_llama = !body.has("prompt") && body.has("content");
  CICADA_ASSIGN(const std::string_view text, body.needed_text(is_llama ? "content" : "prompt"));
  out.request.prompts.push_back({.text = std::string(text), .ids = {}});
  CICADA_ASSIGN(out.add_special_tokens, is_llama ? body.boolean("add_special", false)
                                                 : body.boolean("add_special_tokens", true));
  return {};
}

}  // namespace

Parsed<TokenizeRequest> parse_tokenize(std::string_view text, const json::Limits& limits) {
  CICADA_ASSIGN(const json::Document document, parse_body(text, limits));
  const Path root("");
  CICADA_ASSIGN(const Fields body, Fields::of(document.root(), root));
  TokenizeRequest out;
  CICADA_ASSIGN(out.request.model, read_model(body));
  CICADA_TRY(read_text_or_chat(body, out));
  CICADA_ASSIGN(out.return_token_strings, body.boolean("return_token_strs", false));
  return out;
}

std::string tokenize_body(std::span<const TokenId> tokens, std::uint64_t max_model_len,
                          std::span<const std::string> strings) {
  json::Writer writer;
  writer.begin_object().field("count", tokens.size()).field("max_model_len", max_model_len);
  writer.key("tokens").begin_array();
  for (const TokenId token : tokens) writer.number(token.value);
  writer.end_array().key("token_strs");
  if (strings.empty()) {
    writer.null();
  } else {
    writer.begin_array();
    for (const std::string& text : strings) writer.string(text);
    writer.end_array();
  }
  writer.end_object();
  return writer.take();
}

Parsed<DetokenizeRequest> parse_detokenize(std::string_view text, const json::Limits& limits) {
  CICADA_ASSIGN(const json::Document document, parse_body(text, limits));
  const Path root("");
  CICADA_ASSIGN(const Fields body, Fields::of(document.root(), root));
  DetokenizeRequest out;
  CICADA_ASSIGN(out.model, read_model(body));
  constexpr std::string_view kAllowed = "an array of token numbers";
  CICADA_ASSIGN(const auto list, body.list("tokens", kAllowed));
  const Path path(root, "tokens");
  if (!list) return refuse(path, "nothing", kAllowed);
  CICADA_ASSIGN(out.tokens, read_token_ids(*list, path));
  return out;
}

std::string detokenize_body(std::string_view text) {
  json::Writer writer;
  writer.begin_object().field("prompt", text).field("content", text).end_object();
  return writer.take();
}

}  // namespace cicada::api
