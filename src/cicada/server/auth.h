// Who may ask. Threads: const members from any.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/base/result.h"
#include "cicada/http/exchange.h"
#include "cicada/server/config.h"

namespace cicada::server {

// Keys from a file: one a line, "name:secret" or the secret alone (its name is then "key N"); blank
// lines and those with # in front are skipped. Errors: kInvalidArgument names the line.
Result<std::vector<ApiKey>> parse_keys(std::string_view text);

class Auth {
 public:
  explicit Auth(std::vector<ApiKey> keys) : keys_(std::move(keys)) {}

  bool needs_key() const { return !keys_.empty(); }
  // The name of the key that a request brings in `x-api-key` or as a bearer token; empty where none
  // is needed; nothing where one is and it is missing or wrong. Takes as long for every wrong key.
  std::optional<std::string> find(const http::Request& request) const;

 private:
  std::vector<ApiKey> keys_;
};

}  // namespace cicada::server
