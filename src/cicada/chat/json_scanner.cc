#include "cicada/chat/json_scanner.h"

namespace cicada::chat {
namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

bool JsonScanner::in_string() const {
  return state_ == State::kString || state_ == State::kEscape || state_ == State::kHex ||
         state_ == State::kLowEscape || state_ == State::kLowLetter;
}

JsonScanner::Step JsonScanner::add(char c) {
  switch (state_) {
    case State::kValue:
    case State::kValueOrEnd:
    case State::kKeyOrEnd:
    case State::kKey:
    case State::kColon:
    case State::kAfterValue:
      return between(c);
    case State::kString:
      return in_string(c);
    case State::kEscape:
    case State::kLowEscape:
    case State::kLowLetter:
      return escape(c);
    case State::kHex:
      return hex(c);
    case State::kLiteral:
      return literal(c);
    case State::kEnd:
      return Step::kError;
    default:
      return number(c);
  }
}

// Between strings, numbers and literals.
JsonScanner::Step JsonScanner::between(char c) {
  if (is_space(c)) return Step::kInside;
  switch (state_) {
    case State::kKeyOrEnd:
      if (c == '}') return close(true);
      return c == '"' ? begin_string(true) : Step::kError;
    case State::kKey:
      return c == '"' ? begin_string(true) : Step::kError;
    case State::kColon:
      if (c != ':') return Step::kError;
      state_ = State::kValue;
      return Step::kInside;
    case State::kAfterValue:
      if (c == '}' || c == ']') return close(c == '}');
      if (c != ',') return Step::kError;
      state_ = open_.back() ? State::kKey : State::kValue;
      return Step::kInside;
    case State::kValueOrEnd:
      if (c == ']') return close(false);
      return begin_value(c);
    default:
      return begin_value(c);
  }
}

JsonScanner::Step JsonScanner::begin_value(char c) {
  if (c == '{' || c == '[') return open(c == '{');
  if (open_.empty()) return Step::kError;
  if (c == '"') return begin_string(false);
  if (c == '-') {
    state_ = State::kMinus;
  } else if (is_digit(c)) {
    state_ = c == '0' ? State::kZero : State::kWhole;
  } else if (c == 't' || c == 'f' || c == 'n') {
    rest_ = c == 't' ? "rue" : c == 'f' ? "alse" : "ull";
    state_ = State::kLiteral;
  } else {
    return Step::kError;
  }
  return Step::kValueBegin;
}

JsonScanner::Step JsonScanner::begin_string(bool is_key) {
  is_key_ = is_key;
  state_ = State::kString;
  return is_key ? Step::kKeyBegin : Step::kValueBegin;
}

JsonScanner::Step JsonScanner::open(bool is_object) {
  if (open_.size() >= max_depth_) return Step::kError;
  open_.push_back(is_object);
  state_ = is_object ? State::kKeyOrEnd : State::kValueOrEnd;
  return Step::kValueBegin;
}

JsonScanner::Step JsonScanner::close(bool is_object) {
  if (open_.back() != is_object) return Step::kError;
  open_.pop_back();
  state_ = open_.empty() ? State::kEnd : State::kAfterValue;
  return open_.empty() ? Step::kDone : Step::kInside;
}

JsonScanner::Step JsonScanner::in_string(char c) {
  if (static_cast<unsigned char>(c) < 0x20) return Step::kError;
  if (c == '\\') {
    state_ = State::kEscape;
  } else if (c == '"') {
    state_ = is_key_ ? State::kColon : State::kAfterValue;
    if (is_key_) return Step::kKeyEnd;
  }
  return Step::kInside;
}

// After a backslash, or where one must follow a high surrogate.
JsonScanner::Step JsonScanner::escape(char c) {
  if (state_ == State::kLowEscape) {
    state_ = State::kLowLetter;
    return c == '\\' ? Step::kInside : Step::kError;
  }
  if (c == 'u') {
    state_ = State::kHex;
    num_hex_ = 0;
    code_ = 0;
    return Step::kInside;
  }
  constexpr std::string_view kEscapes = "\"\\/bfnrt";
  if (state_ == State::kLowLetter || kEscapes.find(c) == std::string_view::npos) {
    return Step::kError;
  }
  state_ = State::kString;
  return Step::kInside;
}

JsonScanner::Step JsonScanner::hex(char c) {
  std::uint32_t digit = 0;
  if (is_digit(c)) {
    digit = static_cast<std::uint32_t>(c - '0');
  } else if (c >= 'a' && c <= 'f') {
    digit = static_cast<std::uint32_t>(c - 'a') + 10;
  } else if (c >= 'A' && c <= 'F') {
    digit = static_cast<std::uint32_t>(c - 'A') + 10;
  } else {
    return Step::kError;
  }
  code_ = code_ * 16 + digit;
  if (++num_hex_ < 4) return Step::kInside;
  const bool is_high = code_ >= 0xD800 && code_ <= 0xDBFF;
  const bool is_low = code_ >= 0xDC00 && code_ <= 0xDFFF;
  if (is_low != has_high_surrogate_) return Step::kError;
  has_high_surrogate_ = is_high;
  state_ = is_high ? State::kLowEscape : State::kString;
  return Step::kInside;
}

JsonScanner::Step JsonScanner::literal(char c) {
  if (c != rest_.front()) return Step::kError;
  rest_.remove_prefix(1);
  if (rest_.empty()) state_ = State::kAfterValue;
  return Step::kInside;
}

// A number ends at the first byte that is no part of it, which is then read as what follows.
JsonScanner::Step JsonScanner::number(char c) {
  const bool is_exponent = c == 'e' || c == 'E';
  State next = State::kAfterValue;
  bool may_end = true;
  switch (state_) {
    case State::kMinus:
      may_end = false;
      if (is_digit(c)) next = c == '0' ? State::kZero : State::kWhole;
      break;
    case State::kZero:
    case State::kWhole:
      if (is_digit(c) && state_ == State::kWhole) next = State::kWhole;
      if (c == '.') next = State::kPoint;
      if (is_exponent) next = State::kExponent;
      break;
    case State::kPoint:
      may_end = false;
      if (is_digit(c)) next = State::kFraction;
      break;
    case State::kFraction:
      if (is_digit(c)) next = State::kFraction;
      if (is_exponent) next = State::kExponent;
      break;
    case State::kExponent:
      may_end = false;
      if (c == '+' || c == '-') next = State::kExponentSign;
      if (is_digit(c)) next = State::kExponentDigits;
      break;
    case State::kExponentSign:
      may_end = false;
      if (is_digit(c)) next = State::kExponentDigits;
      break;
    default:
      if (is_digit(c)) next = State::kExponentDigits;
      break;
  }
  if (next == State::kAfterValue && !may_end) return Step::kError;
  state_ = next;
  return next == State::kAfterValue ? between(c) : Step::kInside;
}

}  // namespace cicada::chat
