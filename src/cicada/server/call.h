// One request on its way through the server: who asks, under which id, and the headers that every
// reply carries.
// Threads: the loop's.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/api/error.h"
#include "cicada/http/exchange.h"
#include "cicada/server/app.h"

namespace cicada::server {

class Call {
 public:
  Call(App& app, std::shared_ptr<http::Exchange> exchange);

  App& app() { return *app_; }
  http::Exchange& exchange() { return *exchange_; }
  const http::Request& request() const { return exchange_->request(); }
  const std::string& request_id() const { return request_id_; }
  std::chrono::steady_clock::time_point arrival() const { return arrival_; }

  // Whose key came with it.
  const std::string& tenant() const { return tenant_; }
  void set_tenant(std::string tenant) { tenant_ = std::move(tenant); }

  void respond(int status, std::string body, std::string content_type = "application/json",
               std::vector<http::Header> more = {});
  void fail(const api::ApiError& error);
  // The head of a stream of server-sent events.
  void begin_events();
  // 0: nothing was answered yet.
  int status() const { return status_; }

  // The route that it took, for metrics.
  void set_handler(std::string_view handler) { handler_ = handler; }
  // The reply has left, or never will: counts and logs the request, with its answer if it has one.
  // respond() does it for whole replies that are no answers.
  void note_end(std::optional<metrics::FinishedRequest> answer, bool was_cancelled);
  // An answer follows: its end is noted by who makes it.
  void keep_open() { is_kept_open_ = true; }

 private:
  std::vector<http::Header> headers() const;

  App* app_;
  std::shared_ptr<http::Exchange> exchange_;
  std::string request_id_;
  std::string tenant_;
  std::chrono::steady_clock::time_point arrival_ = std::chrono::steady_clock::now();
  std::string_view handler_;  // of the table of routes
  int status_ = 0;
  bool is_kept_open_ = false;
};

// The headers of every reply, also of those that the HTTP server makes itself.
std::vector<http::Header> common_headers(const App& app, const http::Request& request,
                                         const std::string& request_id);

}  // namespace cicada::server
