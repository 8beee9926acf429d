// From a request's path to the endpoint that answers it.
// Threads: the loop's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cicada/http/exchange.h"
#include "cicada/server/app.h"

namespace cicada::server {

// Answers an exchange: finds the endpoint, asks for a key where one is needed, and refuses in the
// API's shape what is not there (404) or not so (405).
void route(App& app, std::shared_ptr<http::Exchange> exchange);

// Paths of the table, for metrics.
std::vector<std::string> route_names();

// What the HTTP server refuses by itself, in the same shape.
http::Response refuse(App& app, int status, std::string_view sentence,
                      const http::Request& request);

}  // namespace cicada::server
