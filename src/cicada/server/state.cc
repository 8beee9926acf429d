// How the server is: health, version, metrics.
#include "cicada/json/writer.h"
#include "cicada/server/endpoints.h"

namespace cicada::server {

void get_root(const std::shared_ptr<Call>& call) {
  json::Writer writer;
  writer.begin_object()
      .field("name", "cicada")
      .field("model", call->app().config.model_names.front())
      .end_object();
  call->respond(200, writer.take());
}

void get_health(const std::shared_ptr<Call>& call) {
  const App& app = call->app();
  const bool is_ok = app.hub.is_ready() && !app.is_draining;
  std::string_view status = "ok";
  if (!app.hub.is_ready()) status = "engine is restarting";
  if (app.is_draining) status = "stopping";
  json::Writer writer;
  writer.begin_object()
      .field("status", status)
      .field("arch", app.hub.has_been_ready() ? app.hub.hello().architecture : std::string())
      .end_object();
  std::vector<http::Header> more;
  if (!is_ok) more.push_back({"retry-after", "1"});
  call->respond(is_ok ? 200 : 503, writer.take(), "application/json", std::move(more));
}

void get_version(const std::shared_ptr<Call>& call) {
  json::Writer writer;
  writer.begin_object().field("version", call->app().config.version).end_object();
  call->respond(200, writer.take());
}

void get_metrics(const std::shared_ptr<Call>& call) {
  const Telemetry& telemetry = call->app().telemetry;
  if (!telemetry.has_metrics()) {
    return call->fail(api::make_api_error(404, "metrics are off (--no-metrics)"));
  }
  call->respond(200, telemetry.text(), std::string(metrics::kTextContentType));
}

}  // namespace cicada::server
