#include "cicada/server/call.h"

#include <fmt/format.h>

#include <algorithm>

#include "cicada/api/models.h"
#include "cicada/server/attestation.h"
#include "cicada/server/random_id.h"

namespace cicada::server {
namespace {

// Where a browser may read replies from: the origin itself, or nothing.
std::string_view allowed_origin(const ServerConfig& config, std::string_view origin) {
  if (origin.empty()) return {};
  const auto is_allowed = [origin](const std::string& allowed) {
    return allowed == "*" || allowed == origin;
  };
  return std::any_of(config.cors_origins.begin(), config.cors_origins.end(), is_allowed)
             ? origin
             : std::string_view();
}

// True figures: places in the queue, and tokens of prompts that may be active at once. What is used
// comes back as answers end, so the time of reset is now.
void add_rate_limits(const App& app, std::vector<http::Header>& headers) {
  if (!app.hub.is_ready()) return;
  const std::string now = api::rfc3339(unix_time_s());
  const auto add = [&](std::string_view what, std::uint64_t limit, std::uint64_t used) {
    const std::uint64_t remaining = limit > used ? limit - used : 0;
    const std::string prefix = fmt::format("anthropic-ratelimit-{}-", what);
    headers.push_back({prefix + "limit", std::to_string(limit)});
    headers.push_back({prefix + "remaining", std::to_string(remaining)});
    headers.push_back({prefix + "reset", now});
  };
  add("requests", app.max_admitted(), app.num_admitted);
  add("tokens", app.config.max_queue_tokens, app.hub.prompt_tokens());
  add("input-tokens", app.config.max_queue_tokens, app.hub.prompt_tokens());
  add("output-tokens", app.hub.hello().context, 0);
}

}  // namespace

std::vector<http::Header> common_headers(const App& app, const http::Request& request,
                                         const std::string& request_id) {
  std::vector<http::Header> headers = {{"request-id", request_id}, {"x-request-id", request_id}};
  if (app.hub.has_been_ready()) {
    for (http::Header& header : attestation_headers(app.hub.hello())) {
      headers.push_back(std::move(header));
    }
  }
  add_rate_limits(app, headers);
  const std::string_view origin = allowed_origin(app.config, request.header("origin"));
  if (!origin.empty()) {
    headers.push_back({"access-control-allow-origin", std::string(origin)});
    headers.push_back({"access-control-expose-headers", "*"});
    headers.push_back({"vary", "origin"});
  }
  return headers;
}

Call::Call(App& app, std::shared_ptr<http::Exchange> exchange)
    : app_(&app), exchange_(std::move(exchange)), request_id_(random_id("req_")) {}

std::vector<http::Header> Call::headers() const {
  return common_headers(*app_, exchange_->request(), request_id_);
}

void Call::respond(int status, std::string body, std::string content_type,
                   std::vector<http::Header> more) {
  status_ = status;
  std::vector<http::Header> all = headers();
  if (!content_type.empty()) all.push_back({"content-type", std::move(content_type)});
  for (http::Header& header : more) all.push_back(std::move(header));
  exchange_->respond({.status = status, .headers = std::move(all), .body = std::move(body)});
  if (!is_kept_open_) note_end(std::nullopt, false);
}

void Call::note_end(std::optional<metrics::FinishedRequest> answer, bool was_cancelled) {
  const auto time = std::chrono::steady_clock::now() - arrival_;
  if (answer) answer->e2e_seconds = std::chrono::duration<double>(time).count();
  app_->telemetry.note_end({.request_id = request_id_,
                            .handler = handler_,
                            .method = request().method,
                            .tenant = tenant_,
                            .status = status_,
                            .time = time,
                            .answer = answer,
                            .was_cancelled = was_cancelled});
}

void Call::fail(const api::ApiError& error) {
  std::vector<http::Header> more;
  if (error.retry_after_s) more.push_back({"retry-after", std::to_string(*error.retry_after_s)});
  if (error.status == 401) more.push_back({"www-authenticate", "Bearer"});
  respond(error.status, api::error_body(error, request_id_), "application/json", std::move(more));
}

void Call::begin_events() {
  status_ = 200;
  std::vector<http::Header> all = headers();
  all.push_back({"content-type", "text/event-stream; charset=utf-8"});
  all.push_back({"cache-control", "no-cache"});
  all.push_back({"x-accel-buffering", "no"});
  exchange_->begin(200, std::move(all));
}

}  // namespace cicada::server
