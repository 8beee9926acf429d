#include "cicada/server/auth.h"

#include <algorithm>
#include <cctype>

namespace cicada::server {
namespace {

std::string_view trim(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// Looks at all of both whatever differs: its time says how long they are, and no more.
bool is_same_secret(std::string_view given, std::string_view secret) {
  std::size_t difference = given.size() ^ secret.size();
  for (std::size_t i = 0; i < given.size(); ++i) {
    const char expected = secret.empty() ? '\0' : secret[i % secret.size()];
    difference |= static_cast<std::size_t>(static_cast<unsigned char>(given[i] ^ expected));
  }
  return difference == 0;
}

std::string_view bearer_token(std::string_view header) {
  constexpr std::string_view kScheme = "bearer ";
  if (header.size() < kScheme.size()) return {};
  for (std::size_t i = 0; i < kScheme.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(header[i])) != kScheme[i]) return {};
  }
  return trim(header.substr(kScheme.size()));
}

}  // namespace

Result<std::vector<ApiKey>> parse_keys(std::string_view text) {
  std::vector<ApiKey> keys;
  std::size_t line_number = 0;
  while (!text.empty()) {
    ++line_number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    const std::size_t colon = line.find(':');
    ApiKey key;
    if (colon == std::string_view::npos) {
      key = {.name = fmt::format("key {}", keys.size() + 1),
             .secret = std::string(line),
             .is_unnamed = true};
    } else {
      key = {.name = std::string(trim(line.substr(0, colon))),
             .secret = std::string(trim(line.substr(colon + 1)))};
    }
    if (key.name.empty() || key.secret.empty()) {
      return fail(Code::kInvalidArgument,
                  "line {}: a name or a secret is missing, \"name:secret\" "
                  "or a secret alone is allowed",
                  line_number);
    }
    keys.push_back(std::move(key));
  }
  if (keys.empty()) return fail(Code::kInvalidArgument, "no key is in it");
  return keys;
}

std::optional<std::string> Auth::find(const http::Request& request) const {
  if (keys_.empty()) return std::string();
  const std::string_view given[] = {trim(request.header("x-api-key")),
                                    bearer_token(request.header("authorization"))};
  const ApiKey* found = nullptr;
  for (const ApiKey& key : keys_) {
    for (const std::string_view secret : given) {
      if (is_same_secret(secret, key.secret)) found = &key;
    }
  }
  if (found == nullptr) return std::nullopt;
  return found->name;
}

}  // namespace cicada::server
