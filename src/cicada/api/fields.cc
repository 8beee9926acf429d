#include "cicada/api/fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "cicada/json/writer.h"

namespace cicada::api {
namespace {

using Type = simdjson::dom::element_type;

constexpr std::size_t kMaxMembers = 1000;
constexpr std::size_t kMaxQuotedBytes = 40;

}  // namespace

std::string Path::text() const {
  if (parent_ == nullptr) return std::string(key_);
  std::string text = parent_->text();
  if (!text.empty()) text += '.';
  return text += is_index_ ? std::to_string(index_) : std::string(key_);
}

std::string quoted(std::string_view text) {
  if (text.size() <= kMaxQuotedBytes) return json::quote(text);
  std::size_t end = kMaxQuotedBytes;  // between characters
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return json::quote(text.substr(0, end)) + "…";
}

std::string in_words(json::Element element) {
  switch (element.type()) {
    case Type::STRING:
      return quoted(std::string_view(element));
    case Type::INT64:
    case Type::UINT64:
    case Type::DOUBLE:
    case Type::BOOL:
    case Type::NULL_VALUE:
      return simdjson::minify(element);
    case Type::ARRAY:
      return "an array";
    case Type::OBJECT:
      return "an object";
  }
  return "nothing";
}

tl::unexpected<ApiError> unavailable(const Path& path, std::string_view sentence) {
  std::string where = path.text();
  std::string message =
      fmt::format("{}: {}", where.empty() ? std::string_view("the body") : where, sentence);
  return fail(make_api_error(400, std::move(message), {}, std::move(where)));
}

tl::unexpected<ApiError> refuse(const Path& path, std::string_view found,
                                std::string_view allowed) {
  return unavailable(path, fmt::format("found {}, allowed {}", found, allowed));
}

tl::unexpected<ApiError> refuse(const Path& path, json::Element found, std::string_view allowed) {
  return refuse(path, in_words(found), allowed);
}

Parsed<std::string_view> as_text(json::Element element, const Path& path) {
  std::string_view text;
  if (element.get(text) != simdjson::SUCCESS) return refuse(path, element, "a string");
  return text;
}

Parsed<bool> as_bool(json::Element element, const Path& path) {
  bool value = false;
  if (element.get(value) != simdjson::SUCCESS) return refuse(path, element, "true or false");
  return value;
}

Parsed<double> as_number(json::Element element, const Path& path, Range range) {
  double value = 0;
  if (element.get(value) != simdjson::SUCCESS || !(value >= range.min && value <= range.max)) {
    return refuse(path, element, fmt::format("a number from {} to {}", range.min, range.max));
  }
  return value;
}

Parsed<std::int64_t> as_integer(json::Element element, const Path& path, IntegerRange range) {
  std::int64_t value = 0;
  if (element.get(value) != simdjson::SUCCESS || value < range.min || value > range.max) {
    return refuse(path, element, fmt::format("an integer from {} to {}", range.min, range.max));
  }
  return value;
}

Parsed<simdjson::dom::array> as_list(json::Element element, const Path& path,
                                     std::string_view allowed) {
  simdjson::dom::array list;
  if (element.get(list) != simdjson::SUCCESS) return refuse(path, element, allowed);
  return list;
}

Parsed<Fields> Fields::of(json::Element element, const Path& path) {
  simdjson::dom::object members;
  if (element.get(members) != simdjson::SUCCESS) return refuse(path, element, "an object");
  if (members.size() > kMaxMembers) {
    return refuse(path, fmt::format("an object of {} members", members.size()),
                  fmt::format("at most {}", kMaxMembers));
  }
  return Fields(element, members, path);
}

std::optional<json::Element> Fields::find(std::string_view key) const {
  json::Element found;
  if (members_.at_key(key).get(found) != simdjson::SUCCESS || found.is_null()) return std::nullopt;
  return found;
}

Parsed<std::optional<std::string_view>> Fields::text(std::string_view key) const {
  const auto found = find(key);
  if (!found) return std::nullopt;
  CICADA_ASSIGN(const std::string_view text, as_text(*found, Path(*path_, key)));
  return text;
}

Parsed<std::string_view> Fields::needed_text(std::string_view key) const {
  CICADA_ASSIGN(const auto found, text(key));
  if (!found) return refuse(Path(*path_, key), "nothing", "a string");
  return *found;
}

Parsed<std::string_view> Fields::needed_name(std::string_view key, std::size_t max_bytes) const {
  const std::string allowed = fmt::format("a string of 1 to {} bytes", max_bytes);
  CICADA_ASSIGN(const auto found, text(key));
  if (!found) return refuse(Path(*path_, key), "nothing", allowed);
  if (found->empty()) return refuse(Path(*path_, key), "an empty string", allowed);
  if (found->size() > max_bytes) {
    return refuse(Path(*path_, key), fmt::format("{} bytes", found->size()), allowed);
  }
  return *found;
}

Parsed<bool> Fields::boolean(std::string_view key, bool otherwise) const {
  const auto found = find(key);
  if (!found) return otherwise;
  return as_bool(*found, Path(*path_, key));
}

Parsed<std::optional<double>> Fields::number(std::string_view key, Range range) const {
  const auto found = find(key);
  if (!found) return std::nullopt;
  CICADA_ASSIGN(const double value, as_number(*found, Path(*path_, key), range));
  return value;
}

Parsed<std::optional<std::int64_t>> Fields::integer(std::string_view key,
                                                    IntegerRange range) const {
  const auto found = find(key);
  if (!found) return std::nullopt;
  CICADA_ASSIGN(const std::int64_t value, as_integer(*found, Path(*path_, key), range));
  return value;
}

Parsed<std::optional<simdjson::dom::array>> Fields::list(std::string_view key,
                                                         std::string_view allowed) const {
  const auto found = find(key);
  if (!found) return std::nullopt;
  CICADA_ASSIGN(const auto list, as_list(*found, Path(*path_, key), allowed));
  return list;
}

Parsed<std::optional<std::string_view>> Fields::one_of(
    std::string_view key, std::span<const std::string_view> words) const {
  const auto found = find(key);
  if (!found) return std::nullopt;
  std::string_view word;
  if (found->get(word) != simdjson::SUCCESS || std::ranges::find(words, word) == words.end()) {
    return refuse(Path(*path_, key), *found, fmt::format("{}", fmt::join(words, ", ")));
  }
  return word;
}

Parsed<std::string_view> Fields::needed_one_of(std::string_view key,
                                               std::span<const std::string_view> words) const {
  CICADA_TRY(needed_text(key));
  CICADA_ASSIGN(const auto word, one_of(key, words));
  return word.value_or("");
}

tl::unexpected<ApiError> Fields::refuse_field(std::string_view key,
                                              std::string_view allowed) const {
  const auto found = find(key);
  return refuse(Path(*path_, key), found ? in_words(*found) : "nothing", allowed);
}

}  // namespace cicada::api
