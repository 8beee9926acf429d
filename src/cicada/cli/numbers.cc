#include "cicada/cli/numbers.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <system_error>

#include "cicada/base/checked.h"

namespace cicada::cli {
namespace {

// The number that the whole of `text` is, or nothing.
template <typename Number>
std::optional<Number> parse_all(const std::string& text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end) return std::nullopt;
  return value;
}

// Bytes that the letter behind a number stands for; 0: none.
std::uint64_t unit_bytes(char letter) {
  switch (letter) {
    case 'k':
      return 1000;
    case 'm':
      return 1'000'000;
    case 'g':
      return 1'000'000'000;
    case 'K':
      return 1U << 10;
    case 'M':
      return 1U << 20;
    case 'G':
      return 1U << 30;
    default:
      return 0;
  }
}

std::optional<std::uint64_t> parse_bytes(std::string text) {
  const std::uint64_t unit = text.empty() ? 0 : unit_bytes(text.back());
  if (unit != 0) text.pop_back();
  const auto count = parse_all<std::uint64_t>(text);
  if (!count || *count == 0) return std::nullopt;
  return checked_mul(*count, unit == 0 ? 1 : unit);
}

}  // namespace

CLI::Validator whole_number(std::uint64_t low, std::uint64_t high) {
  const auto check = [low, high](std::string& text) -> std::string {
    const auto value = parse_all<std::uint64_t>(text);
    if (!value || *value < low || *value > high) {
      return fmt::format("is '{}', a whole number from {} to {} is needed", text, low, high);
    }
    text = std::to_string(*value);
    return {};
  };
  return {check, "NUMBER"};
}

CLI::Validator byte_size() {
  const auto check = [](std::string& text) -> std::string {
    const auto bytes = parse_bytes(text);
    if (!bytes) {
      return fmt::format("is '{}', a number of bytes is needed, as 536870912 or 512M", text);
    }
    text = std::to_string(*bytes);
    return {};
  };
  return {check, "BYTES"};
}

CLI::Validator decimal_number() {
  const auto check = [](std::string& text) -> std::string {
    const auto value = parse_all<double>(text);
    if (value && std::isfinite(*value)) return {};
    return fmt::format("is '{}', a number is needed", text);
  };
  return {check, "NUMBER"};
}

}  // namespace cicada::cli
