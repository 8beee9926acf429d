// The endpoints that answer: parsed by the client's API, then a Generation.
#include "cicada/api/anthropic.h"
#include "cicada/api/models.h"
#include "cicada/api/openai.h"
#include "cicada/server/attestation.h"
#include "cicada/server/endpoints.h"
#include "cicada/server/generation.h"
#include "cicada/server/model_cards.h"

namespace cicada::server {
namespace {

// What of a request can be refused before it takes a place.
std::optional<api::ApiError> check(Call& call, api::GenerateRequest& request) {
  App& app = call.app();
  if (!app.served_name(request.model)) {
    return api::model_not_found(model_cards(app), request.model);
  }
  if (auto error = check_assertions(call.request(), app.hub.hello())) return error;
  const std::string_view buffer = call.request().header("x-anthropic-stream-buffer");
  if (buffer.empty()) return std::nullopt;
  const auto hint = parse_stream_buffer(buffer);
  if (!hint) return hint.error();
  request.buffer_hint = *hint;
  return std::nullopt;
}

void answer(const std::shared_ptr<Call>& call, api::Parsed<api::GenerateRequest> request) {
  if (!request) return call->fail(request.error());
  if (const auto error = check(*call, *request)) return call->fail(*error);
  Generation::start(call, std::move(*request));
}

}  // namespace

void post_messages(const std::shared_ptr<Call>& call) {
  answer(call, api::parse_messages(call->request().body));
}

void post_chat_completions(const std::shared_ptr<Call>& call) {
  answer(call, api::parse_chat_completions(call->request().body));
}

void post_completions(const std::shared_ptr<Call>& call) {
  answer(call, api::parse_completions(call->request().body));
}

void post_count_tokens(const std::shared_ptr<Call>& call) {
  auto request = api::parse_count_tokens(call->request().body);
  if (!request) return call->fail(request.error());
  if (const auto error = check(*call, *request)) return call->fail(*error);
  App& app = call->app();
  app.off_loop([&app, request = std::move(
                          *request)] { return app.preparer.prepare(request, unix_time_s()); },
               [call](const api::Parsed<Prepared>& prepared) {
                 if (!prepared) return call->fail(prepared.error());
                 call->respond(200, api::count_tokens_body(prepared->prompts.front().size()));
               });
}

}  // namespace cicada::server
