#include "cicada/api/models.h"

#include "cicada/server/endpoints.h"
#include "cicada/server/model_cards.h"

namespace cicada::server {
namespace {

constexpr std::string_view kModelPath = "/v1/models/";

api::ModelCard card(const App& app, const std::string& name) {
  const std::uint64_t context = app.hub.hello().context;
  return {.id = name,
          .display_name = name,
          .created_unix_s = app.config.model_created_unix_s,
          .max_input_tokens = context,
          .max_tokens = context - 1};
}

}  // namespace

std::vector<api::ModelCard> model_cards(const App& app) {
  std::vector<api::ModelCard> cards;
  for (const std::string& name : app.config.model_names) {
    if (!name.ends_with('*')) cards.push_back(card(app, name));
  }
  return cards;
}

void get_models(const std::shared_ptr<Call>& call) {
  api::ModelsQuery query{.limit = call->request().query_value("limit"),
                         .after_id = call->request().query_value("after_id"),
                         .before_id = call->request().query_value("before_id"),
                         .lifecycle = {}};
  for (const auto& [name, value] : call->request().query) {
    if (name == "lifecycle[]" || name == "lifecycle") query.lifecycle.emplace_back(value);
  }
  auto body = api::models_body(model_cards(call->app()), query);
  if (!body) return call->fail(body.error());
  call->respond(200, std::move(*body));
}

void get_model(const std::shared_ptr<Call>& call) {
  const std::string id = call->request().path.substr(kModelPath.size());
  std::vector<api::ModelCard> cards = model_cards(call->app());
  // A name that a pattern stands for is served, so it is found.
  if (!id.empty() && call->app().served_name(id)) cards.push_back(card(call->app(), id));
  auto body = api::model_body(cards, id);
  if (!body) return call->fail(body.error());
  call->respond(200, std::move(*body));
}

}  // namespace cicada::server
