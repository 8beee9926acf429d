// /tokenize and /detokenize, as vLLM and llama-server have them.
#include "cicada/api/openai.h"
#include "cicada/server/endpoints.h"
#include "cicada/server/model_cards.h"

namespace cicada::server {
namespace {

using Ids = std::vector<TokenId>;

api::Parsed<std::string> tokenize(const Preparer& preparer, const api::TokenizeRequest& asked,
                                  std::uint64_t context) {
  Ids ids;
  if (asked.is_chat) {
    auto prepared = preparer.prepare(asked.request, unix_time_s());
    if (!prepared) return fail(prepared.error());
    ids = std::move(prepared->prompts.front());
  } else {
    ids = preparer.tokenizer->encode(
        asked.request.prompts.front().text,
        {.parse_special = asked.add_special_tokens,
         .add_bos = asked.add_special_tokens && preparer.tokenizer->wants_bos()});
  }
  std::vector<std::string> strings;
  for (const TokenId id : asked.return_token_strings ? ids : Ids()) {
    strings.emplace_back(preparer.tokenizer->token_text(id));
  }
  return api::tokenize_body(ids, context, strings);
}

// Whether the model is here that a request may name.
bool knows_model(Call& call, std::string_view name) {
  if (call.app().served_name(name)) return true;
  call.fail(api::model_not_found(model_cards(call.app()), name));
  return false;
}

}  // namespace

void post_tokenize(const std::shared_ptr<Call>& call) {
  auto asked = api::parse_tokenize(call->request().body);
  if (!asked) return call->fail(asked.error());
  App& app = call->app();
  if (!knows_model(*call, asked->request.model)) return;
  const std::uint64_t context = app.hub.hello().context;
  app.off_loop(
      [&app, context, asked = std::move(*asked)] { return tokenize(app.preparer, asked, context); },
      [call](api::Parsed<std::string> body) {
        if (!body) return call->fail(body.error());
        call->respond(200, std::move(*body));
      });
}

void post_detokenize(const std::shared_ptr<Call>& call) {
  const auto asked = api::parse_detokenize(call->request().body);
  if (!asked) return call->fail(asked.error());
  if (!knows_model(*call, asked->model)) return;
  const tokenizer::Tokenizer& tokenizer = *call->app().preparer.tokenizer;
  Ids ids;
  for (const std::int64_t id : asked->tokens) {
    const auto token = token_of(tokenizer, id, "tokens: id", "tokens");
    if (!token) return call->fail(token.error());
    ids.push_back(*token);
  }
  call->respond(200, api::detokenize_body(tokenizer.decode(ids, true)));
}

}  // namespace cicada::server
