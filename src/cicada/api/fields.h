// Reading the fields of a request's body: each fault becomes one sentence that names the field,
// what was found and what is allowed.
//
// A null counts as absent. Views are of the document that was parsed.
// Threads: values and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cicada/api/error.h"
#include "cicada/json/parse.h"

namespace cicada::api {

// Where a value stands: "messages.2.content". A chain on the stack, put into words only when there
// is something to say. Lives as long as those made of it.
class Path {
 public:
  explicit Path(std::string_view key) : key_(key) {}
  Path(const Path& parent, std::string_view key) : parent_(&parent), key_(key) {}
  Path(const Path& parent, std::size_t index) : parent_(&parent), index_(index), is_index_(true) {}
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;

  std::string text() const;

 private:
  const Path* parent_ = nullptr;
  std::string_view key_;  // empty: the body itself
  std::size_t index_ = 0;
  bool is_index_ = false;
};

// "{path}: found {found}, allowed {allowed}", status 400.
tl::unexpected<ApiError> refuse(const Path& path, std::string_view found, std::string_view allowed);
tl::unexpected<ApiError> refuse(const Path& path, json::Element found, std::string_view allowed);
// "{path}: {sentence}", status 400, for what is sensible and not there.
tl::unexpected<ApiError> unavailable(const Path& path, std::string_view sentence);

// A text as a JSON string, of which only the front is shown where it is long.
std::string quoted(std::string_view text);
// A value in words: numbers and short texts as they are ("\"robot\"", "1.5"), else its kind.
std::string in_words(json::Element element);

// Both ends are allowed.
struct Range {
  double min = 0;
  double max = 0;
};
struct IntegerRange {
  std::int64_t min = 0;
  std::int64_t max = 0;
};

// `element` as such a value, or a refusal.
Parsed<std::string_view> as_text(json::Element element, const Path& path);
Parsed<bool> as_bool(json::Element element, const Path& path);
Parsed<double> as_number(json::Element element, const Path& path, Range range);
Parsed<std::int64_t> as_integer(json::Element element, const Path& path, IntegerRange range);
Parsed<simdjson::dom::array> as_list(json::Element element, const Path& path,
                                     std::string_view allowed);

// An object of the body. `path` outlives it.
class Fields {
 public:
  // An object of at most 1,000 members: looking one up takes time by their number.
  static Parsed<Fields> of(json::Element element, const Path& path);

  const Path& path() const { return *path_; }
  json::Element element() const { return element_; }

  // Of two members with one name the first counts.
  std::optional<json::Element> find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key).has_value(); }

  Parsed<std::optional<std::string_view>> text(std::string_view key) const;
  // Not empty, and at most `max_bytes`.
  Parsed<std::string_view> needed_name(std::string_view key, std::size_t max_bytes) const;
  Parsed<std::string_view> needed_text(std::string_view key) const;
  Parsed<bool> boolean(std::string_view key, bool otherwise) const;
  Parsed<std::optional<double>> number(std::string_view key, Range range) const;
  Parsed<std::optional<std::int64_t>> integer(std::string_view key, IntegerRange range) const;
  Parsed<std::optional<simdjson::dom::array>> list(std::string_view key,
                                                   std::string_view allowed) const;
  // One of the words; they are listed where it is none.
  Parsed<std::optional<std::string_view>> one_of(std::string_view key,
                                                 std::span<const std::string_view> words) const;
  Parsed<std::string_view> needed_one_of(std::string_view key,
                                         std::span<const std::string_view> words) const;

  // A refusal of what stands under `key`.
  tl::unexpected<ApiError> refuse_field(std::string_view key, std::string_view allowed) const;

 private:
  Fields(json::Element element, simdjson::dom::object members, const Path& path)
      : element_(element), members_(members), path_(&path) {}

  json::Element element_;
  simdjson::dom::object members_;
  const Path* path_;
};

}  // namespace cicada::api
