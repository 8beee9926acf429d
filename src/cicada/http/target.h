// The target of a request line taken apart: path and query, percent-decoded.
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cicada/base/result.h"

namespace cicada::http {

struct Target {
  std::string path;
  std::vector<std::pair<std::string, std::string>> query;
};

// Takes "/path?query", "http://host/path?query" and "*". Errors: kInvalidArgument for another form,
// a percent sign without two hex digits, and a NUL.
Result<Target> parse_target(std::string_view target);

}  // namespace cicada::http
