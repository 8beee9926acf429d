#include <algorithm>

#include "cicada/formats/quote.h"
#include "cicada/formats/verify.h"

namespace cicada::formats {
namespace {

constexpr std::size_t kHexDigits = 64;

std::string_view base_name(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

}  // namespace

Result<std::string> parse_sha256(std::string_view text) {
  std::string digest(text);
  for (char& c : digest) {
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  }
  const bool is_hex = std::all_of(digest.begin(), digest.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
  if (digest.size() == kHexDigits && is_hex) return digest;
  return fail(Code::kInvalidArgument, "\"{}\" is not a SHA-256 digest: 64 hex digits are needed",
              quote(text));
}

Result<std::string> find_sha256(std::string_view sums, std::string_view file_name) {
  for (std::size_t line_number = 1; !sums.empty(); ++line_number) {
    const std::size_t end = std::min(sums.find('\n'), sums.size());
    std::string_view line = sums.substr(0, end);
    sums.remove_prefix(std::min(end + 1, sums.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const bool has_name = line.size() > kHexDigits + 2 && line[kHexDigits] == ' ' &&
                          (line[kHexDigits + 1] == ' ' || line[kHexDigits + 1] == '*');
    if (!has_name) {
      return fail(Code::kInvalidArgument,
                  "line {}: is not a digest of 64 hex digits, two spaces and a name", line_number);
    }
    auto digest = parse_sha256(line.substr(0, kHexDigits));
    if (!digest) {
      return fail(std::move(digest).error().with_context(fmt::format("line {}", line_number)));
    }
    if (base_name(line.substr(kHexDigits + 2)) == base_name(file_name)) return digest;
  }
  return fail(Code::kNotFound, "no line for {}", quote(base_name(file_name)));
}

}  // namespace cicada::formats
