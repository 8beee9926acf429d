#include "cicada/model/kv_policy.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <optional>

#include "cicada/base/text.h"

namespace cicada::model {
namespace {

constexpr std::string_view kAllowed =
    "all; window:TOKENS (from 1) or angle:TAU (above 0), and with them, once each, "
    "sinks:TOKENS and, for an angle, theta:BASE (above 0); pages:COUNT (from 4)";

constexpr double kDefaultTheta = 500000.0;  // of the rule as it was published

bool drops(double tau, double theta, std::int64_t distance) {
  return std::fabs(static_cast<double>(distance) / theta * 2.0 * std::numbers::pi) > tau;
}

Error wrong(std::string_view part) {
  constexpr std::size_t kMostShown = 40;
  return Error(Code::kInvalidArgument, fmt::format("KV policy '{}' is unknown; allowed are {}",
                                                   part.substr(0, kMostShown), kAllowed));
}

// What the parts of a policy say.
struct Parts {
  std::optional<std::int64_t> window;
  std::optional<std::int64_t> sinks;
  std::optional<std::int64_t> pages;
  std::optional<double> tau;
  std::optional<double> theta;
};

// False when the part is none, or says again what was said.
bool read_part(std::string_view part, Parts& parts) {
  std::string_view value = part;
  const std::string_view name = take_until(value, ':');
  const auto take = [value](auto& field, auto least, auto most) {
    const auto number = whole_text_number<std::remove_cvref_t<decltype(*field)>>(value);
    if (field || !number || !(*number >= least) || !(*number <= most)) return false;
    field = number;
    return true;
  };
  constexpr double kMostBase = 1e12;
  constexpr double kLeast = 1e-12;
  if (name == "window") return take(parts.window, std::int64_t{1}, kMostWindow);
  if (name == "pages") return take(parts.pages, kLeastPages, kMostWindow);
  if (name == "sinks") return take(parts.sinks, std::int64_t{0}, kMostWindow);
  if (name == "angle") return take(parts.tau, kLeast, kMostBase);
  if (name == "theta") return take(parts.theta, kLeast, kMostBase);
  return false;
}

}  // namespace

std::int64_t window_of_angle(double tau, double theta) {
  const double distance = tau * theta / (2.0 * std::numbers::pi);
  if (distance >= static_cast<double>(kMostWindow)) return kMostWindow;
  // The rule rounds three times, so the border may be one off: it is asked there.
  auto window = static_cast<std::int64_t>(distance);
  while (window < kMostWindow && !drops(tau, theta, window)) ++window;
  while (window > 0 && drops(tau, theta, window - 1)) --window;
  return window;
}

Result<KvPolicy> parse_kv_policy(std::string_view text) {
  if (text == "all") return KvPolicy{};
  Parts parts;
  if (text.ends_with(',')) return fail(wrong(text));
  std::string_view rest = text;
  do {
    const std::string_view part = take_until(rest, ',');
    if (!read_part(part, parts)) return fail(wrong(part));
  } while (!rest.empty());
  if (parts.pages) {
    if (parts.window || parts.tau || parts.sinks || parts.theta) return fail(wrong(text));
    return KvPolicy{.pages = *parts.pages};
  }
  if (parts.window.has_value() == parts.tau.has_value()) return fail(wrong(text));
  if (parts.theta && !parts.tau) return fail(wrong(text));
  return KvPolicy{.window = parts.window
                                ? *parts.window
                                : window_of_angle(*parts.tau, parts.theta.value_or(kDefaultTheta)),
                  .sinks = parts.sinks.value_or(0)};
}

std::string kv_policy_name(const KvPolicy& policy) {
  if (policy.pages > 0) return fmt::format("pages:{}", policy.pages);
  if (policy.window == 0) return "all";
  if (policy.sinks == 0) return fmt::format("window:{}", policy.window);
  return fmt::format("window:{},sinks:{}", policy.window, policy.sinks);
}

}  // namespace cicada::model
