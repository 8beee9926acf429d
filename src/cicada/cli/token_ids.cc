#include "cicada/cli/token_ids.h"

#include <charconv>

#include "cicada/formats/quote.h"
#include "cicada/json/parse.h"

namespace cicada::cli {
namespace {

constexpr std::string_view kBlanks = " \t\r\n\f\v";
// Memory of parsed JSON is about ten times the text.
constexpr json::Limits kJsonLimits = {.max_bytes = std::size_t{1} << 26, .max_depth = 4};

tl::unexpected<Error> refuse(std::string_view found, std::int32_t vocab_size) {
  return fail(Code::kInvalidArgument, "token id '{}': a whole number from 0 to {} is needed",
              formats::quote(found), vocab_size - 1);
}

Result<std::vector<TokenId>> parse_words(std::string_view text, std::int32_t vocab_size) {
  std::vector<TokenId> ids;
  for (std::size_t at = text.find_first_not_of(kBlanks); at != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(kBlanks, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    std::int32_t value = -1;
    const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    const bool is_number = error == std::errc() && rest == word.data() + word.size();
    if (!is_number || value < 0 || value >= vocab_size) return refuse(word, vocab_size);
    ids.emplace_back(value);
    at = text.find_first_not_of(kBlanks, end);
  }
  return ids;
}

Result<std::vector<TokenId>> parse_json(std::string_view text, std::int32_t vocab_size) {
  CICADA_ASSIGN(const json::Document document, json::parse(text, kJsonLimits));
  json::Element list = document.root();
  if (list.is_object()) {
    CICADA_ASSIGN(const auto member, json::find(list, "tokens", "standard input"));
    if (!member) return fail(Code::kInvalidArgument, "standard input: has no member \"tokens\"");
    list = *member;
  }
  CICADA_ASSIGN(const auto array, json::as_array(list, "tokens"));
  std::vector<TokenId> ids;
  for (const json::Element element : array) {
    std::int64_t value = -1;
    const bool is_integer = element.get_int64().get(value) == simdjson::SUCCESS;
    if (!is_integer || value < 0 || value >= vocab_size) {
      return refuse(simdjson::minify(element), vocab_size);
    }
    ids.emplace_back(static_cast<std::int32_t>(value));
  }
  return ids;
}

}  // namespace

Result<std::vector<TokenId>> parse_token_ids(std::string_view text, std::int32_t vocab_size) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  const bool is_json =
      begin != std::string_view::npos && (text[begin] == '[' || text[begin] == '{');
  return is_json ? parse_json(text, vocab_size) : parse_words(text, vocab_size);
}

}  // namespace cicada::cli
