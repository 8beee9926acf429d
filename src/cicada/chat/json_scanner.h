// Checks a JSON object or array as its bytes come (RFC 8259, strictly), and says where its parts
// begin and end. Only the bytes of strings are taken as they are: whether they are UTF-8 is not
// looked at; escaped surrogates must be pairs.
// Threads: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace cicada::chat {

class JsonScanner {
 public:
  // `max_depth`: objects and arrays within each other.
  explicit JsonScanner(std::size_t max_depth) : max_depth_(max_depth) {}

  enum class Step : std::uint8_t {
    kInside,      // nothing of note
    kKeyBegin,    // the opening quote of a member's name
    kKeyEnd,      // its closing quote
    kValueBegin,  // the first byte of a value
    kDone,        // the last byte of all
    kError,       // this byte cannot stand here; nothing may be added after it, nor after kDone
  };
  Step add(char c);

  std::size_t depth() const { return open_.size(); }  // objects and arrays that are open
  bool in_string() const;

 private:
  enum class State : std::uint8_t {
    kValue,
    kValueOrEnd,
    kKeyOrEnd,
    kKey,
    kColon,
    kAfterValue,
    kString,
    kEscape,
    kHex,
    kLowEscape,  // after a high surrogate: the backslash of the low one …
    kLowLetter,  // … and its u
    kMinus,
    kZero,
    kWhole,
    kPoint,
    kFraction,
    kExponent,
    kExponentSign,
    kExponentDigits,
    kLiteral,
    kEnd,
  };

  Step between(char c);
  Step begin_value(char c);
  Step begin_string(bool is_key);
  Step open(bool is_object);
  Step close(bool is_object);
  Step in_string(char c);
  Step escape(char c);
  Step hex(char c);
  Step literal(char c);
  Step number(char c);

  std::size_t max_depth_;
  std::vector<bool> open_;  // of each level: is it an object?
  State state_ = State::kValue;
  bool is_key_ = false;              // the string is a member's name
  std::string_view rest_;            // of true, false, null
  std::size_t num_hex_ = 0;          // digits of an escape so far
  std::uint32_t code_ = 0;           // their value
  bool has_high_surrogate_ = false;  // the escape before was the first of a pair
};

}  // namespace cicada::chat
