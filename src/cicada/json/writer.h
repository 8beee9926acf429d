// Writing JSON piece by piece, compact, always valid UTF-8.
// Threads: one thread. Invariant: the caller pairs begin and end and gives each member a key
// (checked).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace cicada::json {

class Writer {
 public:
  Writer& begin_object();
  Writer& end_object();
  Writer& begin_array();
  Writer& end_array();
  Writer& key(std::string_view name);

  // Bytes that are not UTF-8 become U+FFFD, one for each maximal broken piece.
  Writer& string(std::string_view text);
  // The shortest digits that read back as the same number; NaN and infinities become null.
  Writer& number(double value);
  Writer& number(float value);
  Writer& number(std::uint64_t value);
  Writer& number(std::int64_t value);
  template <typename T>
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, char>)
  Writer& number(T value) {
    if constexpr (std::is_signed_v<T>) return number(static_cast<std::int64_t>(value));
    return number(static_cast<std::uint64_t>(value));
  }
  Writer& boolean(bool value);
  Writer& null();
  // A value that is JSON text already. Precondition: it is.
  Writer& raw(std::string_view json);

  // key(name) and a value of whatever type.
  template <typename T>
  Writer& field(std::string_view name, const T& value) {
    key(name);
    if constexpr (std::is_same_v<T, bool>) {
      return boolean(value);
    } else if constexpr (std::is_arithmetic_v<T>) {
      return number(value);
    } else {
      return string(value);
    }
  }

  // key(name) and the text; null where it is empty.
  Writer& text_or_null(std::string_view name, std::string_view text) {
    key(name);
    return text.empty() ? null() : string(text);
  }

  // The text written since the last take(): all of it, or a piece to send on.
  std::string take();

 private:
  struct Level {
    bool is_object = false;
    bool has_members = false;
    bool has_key = false;  // a key waits for its value
  };

  void before_value();
  void begin(bool is_object, char bracket);
  void end(bool is_object, char bracket);
  template <typename T>
  Writer& digits(T value);

  std::string text_;
  std::vector<Level> levels_;
};

// `text` as a JSON string with its quotes.
std::string quote(std::string_view text);

}  // namespace cicada::json
