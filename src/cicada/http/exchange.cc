#include "cicada/http/exchange.h"

#include <algorithm>

#include "cicada/http/ascii.h"

namespace cicada::http {

std::string_view Request::header(std::string_view name) const {
  const auto found = std::ranges::find_if(
      headers, [&](const Header& header) { return equals_ignoring_case(header.name, name); });
  return found == headers.end() ? std::string_view() : std::string_view(found->value);
}

std::string_view Request::query_value(std::string_view name) const {
  const auto found =
      std::ranges::find_if(query, [&](const auto& pair) { return pair.first == name; });
  return found == query.end() ? std::string_view() : std::string_view(found->second);
}

}  // namespace cicada::http
