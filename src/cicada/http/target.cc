#include "cicada/http/target.h"

#include <algorithm>

#include "cicada/base/text.h"

namespace cicada::http {
namespace {

// -1 for what is no hex digit.
int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

enum class Plus : bool { kKept, kIsSpace };

Result<std::string> percent_decode(std::string_view text, Plus plus) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '+' && plus == Plus::kIsSpace) {
      c = ' ';
    } else if (c == '%') {
      const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return fail(Code::kInvalidArgument, "the URL has a '%' without two hex digits behind it");
      }
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    if (c == '\0') return fail(Code::kInvalidArgument, "the URL has a NUL character");
    decoded.push_back(c);
  }
  return decoded;
}

Result<void> parse_query(std::string_view text, Target& target) {
  while (!text.empty()) {
    std::string_view pair = take_until(text, '&');
    if (pair.empty()) continue;
    CICADA_ASSIGN(auto name, percent_decode(take_until(pair, '='), Plus::kIsSpace));
    CICADA_ASSIGN(auto value, percent_decode(pair, Plus::kIsSpace));
    target.query.emplace_back(std::move(name), std::move(value));
  }
  return {};
}

}  // namespace

Result<Target> parse_target(std::string_view target) {
  if (target == "*") return Target{.path = "*"};
  bool is_absolute = false;
  if (const auto scheme_end = target.find("://");
      !target.starts_with('/') && scheme_end != std::string_view::npos) {
    target.remove_prefix(scheme_end + 3);
    target.remove_prefix(std::min(target.find_first_of("/?"), target.size()));
    is_absolute = true;
  }
  std::string_view path = take_until(target, '?');
  if (path.empty() && is_absolute) path = "/";
  if (!path.starts_with('/')) {
    return fail(Code::kInvalidArgument, "the URL's path does not begin with '/'");
  }
  Target result;
  CICADA_ASSIGN(result.path, percent_decode(path, Plus::kKept));
  CICADA_TRY(parse_query(target, result));
  return result;
}

}  // namespace cicada::http
