#include "cicada/json/parse.h"

#include <algorithm>

namespace cicada::json {
namespace {

std::string_view type_words(Element element) {
  switch (element.type()) {
    case simdjson::dom::element_type::ARRAY:
      return "an array";
    case simdjson::dom::element_type::OBJECT:
      return "an object";
    case simdjson::dom::element_type::INT64:
    case simdjson::dom::element_type::UINT64:
      return "an integer";
    case simdjson::dom::element_type::DOUBLE:
      return "a float";
    case simdjson::dom::element_type::STRING:
      return "a string";
    case simdjson::dom::element_type::BOOL:
      return "a bool";
    case simdjson::dom::element_type::NULL_VALUE:
      return "null";
  }
  return "unknown";
}

template <typename T>
Result<T> get(Element element, std::string_view what, std::string_view needed) {
  T value{};
  if (element.get(value) != simdjson::SUCCESS) {
    return fail(Code::kInvalidArgument, "{}: is {}, {} is needed", what, type_words(element),
                needed);
  }
  return value;
}

}  // namespace

Result<Document> parse(std::string_view text, const Limits& limits) {
  if (text.size() > limits.max_bytes) {
    return fail(Code::kInvalidArgument, "JSON of {} bytes, at most {}", text.size(),
                limits.max_bytes);
  }
  auto parser = std::make_unique<simdjson::dom::parser>(limits.max_bytes);
  // simdjson's own depth counts the document as one level.
  auto error = parser->allocate(std::max<std::size_t>(text.size(), 64), limits.max_depth + 1);
  Element root;
  if (error == simdjson::SUCCESS) error = parser->parse(text.data(), text.size()).get(root);
  if (error == simdjson::DEPTH_ERROR) {
    return fail(Code::kInvalidArgument, "JSON nested deeper than {} levels", limits.max_depth);
  }
  if (error != simdjson::SUCCESS) {
    return fail(Code::kInvalidArgument, "not valid JSON: {}", simdjson::error_message(error));
  }
  return Document(std::move(parser), root);
}

Result<std::optional<Element>> find(Element object, std::string_view key, std::string_view what) {
  CICADA_ASSIGN(const simdjson::dom::object members, as_object(object, what));
  Element found;
  if (members.at_key(key).get(found) != simdjson::SUCCESS || found.is_null()) return std::nullopt;
  return found;
}

Result<std::uint64_t> as_u64(Element element, std::string_view what) {
  return get<std::uint64_t>(element, what, "an unsigned integer");
}

Result<double> as_f64(Element element, std::string_view what) {
  return get<double>(element, what, "a number");
}

Result<bool> as_bool(Element element, std::string_view what) {
  return get<bool>(element, what, "a bool");
}

Result<std::string_view> as_string(Element element, std::string_view what) {
  return get<std::string_view>(element, what, "a string");
}

Result<simdjson::dom::object> as_object(Element element, std::string_view what) {
  return get<simdjson::dom::object>(element, what, "an object");
}

Result<simdjson::dom::array> as_array(Element element, std::string_view what) {
  return get<simdjson::dom::array>(element, what, "an array");
}

}  // namespace cicada::json
