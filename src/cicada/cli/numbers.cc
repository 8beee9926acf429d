#include "cicada/cli/numbers.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <system_error>

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

CLI::Validator decimal_number() {
  const auto check = [](std::string& text) -> std::string {
    const auto value = parse_all<double>(text);
    if (value && std::isfinite(*value)) return {};
    return fmt::format("is '{}', a number is needed", text);
  };
  return {check, "NUMBER"};
}

}  // namespace cicada::cli
