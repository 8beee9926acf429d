// Reading JSON: a thin layer over simdjson's DOM with limits on size and depth, and errors as
// values. Threads: a Document may be read from several threads.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "cicada/base/result.h"

namespace cicada::json {

using Element = simdjson::dom::element;

// Memory of a parsed text is about ten times its size: `max_bytes` bounds both.
struct Limits {
  std::size_t max_bytes = std::size_t{1} << 20;
  std::size_t max_depth = 64;  // of nested objects and arrays
};

// A parsed text. Elements and their strings are views, valid as long as the Document lives (also
// after it was moved).
class Document {
 public:
  Element root() const { return root_; }

 private:
  friend Result<Document> parse(std::string_view text, const Limits& limits);
  Document(std::unique_ptr<simdjson::dom::parser> parser, Element root)
      : parser_(std::move(parser)), root_(root) {}

  std::unique_ptr<simdjson::dom::parser> parser_;
  Element root_;
};

// Errors: kInvalidArgument names the fault (not JSON, invalid UTF-8, too large, too deep).
Result<Document> parse(std::string_view text, const Limits& limits = {});

// The member `key` of an object; nothing when it is missing or null. Of two members with one name
// the first counts. Errors: kInvalidArgument when `object` is not an object; `what` names it.
Result<std::optional<Element>> find(Element object, std::string_view key, std::string_view what);

// Typed values. Errors: kInvalidArgument, "num_layers: is a string, an unsigned integer is needed".
Result<std::uint64_t> as_u64(Element element, std::string_view what);
Result<double> as_f64(Element element, std::string_view what);  // integers are accepted
Result<bool> as_bool(Element element, std::string_view what);
Result<std::string_view> as_string(Element element, std::string_view what);
Result<simdjson::dom::object> as_object(Element element, std::string_view what);
Result<simdjson::dom::array> as_array(Element element, std::string_view what);

}  // namespace cicada::json
