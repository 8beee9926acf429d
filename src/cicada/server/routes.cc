#include "cicada/server/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cicada/server/call.h"
#include "cicada/server/endpoints.h"
#include "cicada/server/random_id.h"

namespace cicada::server {
namespace {

struct Route {
  std::string_view method;
  std::string_view path;  // ends in '/': of all below it
  void (*endpoint)(const std::shared_ptr<Call>&);
  bool is_open = false;  // needs no key
};

constexpr std::array kRoutes = {
    Route{"POST", "/v1/messages", post_messages},
    Route{"POST", "/v1/messages/count_tokens", post_count_tokens},
    Route{"POST", "/v1/chat/completions", post_chat_completions},
    Route{"POST", "/v1/completions", post_completions},
    Route{"GET", "/v1/models", get_models},
    Route{"GET", "/v1/models/", get_model},
    Route{"POST", "/tokenize", post_tokenize},
    Route{"POST", "/detokenize", post_detokenize},
    Route{"GET", "/", get_root, true},
    Route{"GET", "/health", get_health, true},
    Route{"GET", "/healthz", get_health, true},
    Route{"GET", "/ping", get_health, true},
    Route{"GET", "/version", get_version, true},
    Route{"GET", "/metrics", get_metrics, true},
};

bool is_path(const Route& route, std::string_view path) {
  if (route.path.size() > 1 && route.path.back() == '/') {
    return path.size() > route.path.size() && path.starts_with(route.path);
  }
  return path == route.path;
}

// A browser asks before it sends what it would send.
void answer_preflight(Call& call, std::string_view methods) {
  call.respond(204, {}, {},
               {{"access-control-allow-methods", std::string(methods)},
                {"access-control-allow-headers", "*, authorization"},
                {"access-control-max-age", "600"}});
}

}  // namespace

std::vector<std::string> route_names() {
  std::vector<std::string> names;
  for (const Route& route : kRoutes) names.emplace_back(route.path);
  return names;
}

void route(App& app, std::shared_ptr<http::Exchange> exchange) {
  const auto call = std::make_shared<Call>(app, std::move(exchange));
  const http::Request& request = call->request();
  const std::string_view method =
      request.method == "HEAD" ? "GET" : std::string_view(request.method);
  std::string allowed;
  const Route* found = nullptr;
  for (const Route& candidate : kRoutes) {
    if (!is_path(candidate, request.path)) continue;
    allowed += fmt::format("{}{}", allowed.empty() ? "" : ", ", candidate.method);
    if (candidate.method == method) found = &candidate;
  }
  if (request.method == "OPTIONS" && !allowed.empty()) {
    return answer_preflight(*call, allowed + ", OPTIONS");
  }
  if (found != nullptr) call->set_handler(found->path);
  const std::optional<std::string> tenant = app.auth.find(request);
  if (!tenant && (found == nullptr || !found->is_open)) {
    return call->fail(api::make_api_error(
        401,
        "a key is needed, in `authorization: Bearer` or `x-api-key`; there is none, or it is "
        "not one of the server's",
        "invalid_api_key"));
  }
  if (tenant) call->set_tenant(*tenant);
  if (found == nullptr && allowed.empty()) {
    return call->fail(
        api::make_api_error(404, fmt::format("there is no {} here", request.path.substr(0, 256))));
  }
  if (found == nullptr) {
    return call->respond(
        405,
        api::error_body(api::make_api_error(405, fmt::format("{} takes {}, not {}", request.path,
                                                             allowed, request.method)),
                        call->request_id()),
        "application/json", {{"allow", allowed}});
  }
  found->endpoint(call);
}

http::Response refuse(App& app, int status, std::string_view sentence,
                      const http::Request& request) {
  const std::string request_id = random_id("req_");
  http::Response response{
      .status = status,
      .headers = common_headers(app, request, request_id),
      .body = api::error_body(api::make_api_error(status, std::string(sentence)), request_id)};
  response.headers.push_back({"content-type", "application/json"});
  app.telemetry.note_end({.request_id = request_id, .method = request.method, .status = status});
  return response;
}

}  // namespace cicada::server
