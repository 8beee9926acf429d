#include "cicada/cli/numbers.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
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
  constexpr std::string_view kDecimal = "kmg";
  constexpr std::string_view kBinary = "KMG";
  std::uint64_t decimal = 1;
  std::uint64_t binary = 1;
  for (std::size_t i = 0; i < kDecimal.size(); ++i) {
    decimal *= 1000;
    binary *= 1024;
    if (letter == kDecimal[i]) return decimal;
    if (letter == kBinary[i]) return binary;
  }
  return 0;
}

std::optional<std::uint64_t> parse_bytes(std::string text) {
  std::uint64_t unit = 1;
  if (!text.empty() && unit_bytes(text.back()) != 0) {
    unit = unit_bytes(text.back());
    text.pop_back();
  }
  const auto count = parse_all<std::uint64_t>(text);
  if (!count || *count == 0) return std::nullopt;
  return checked_mul(*count, unit);
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
