#include "cicada/server/attestation.h"

#include <fmt/format.h>

#include <cmath>

#include "cicada/base/text.h"

namespace cicada::server {
namespace {

constexpr std::string_view kDetailsBeta = "architecture-details-2024-08";

std::string without_spaces(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != ' ' && c != '\t') out += c;
  }
  return out;
}

// 500000, 500000.0 and 5e5 are one number.
bool is_number(std::string_view text, double number) {
  const auto found = whole_text_number<double>(text);
  return found && *found == number;
}

// What a request may insist on, the empty ones included.
std::vector<http::Header> attested(const messages::Hello& hello) {
  return {{"x-model-arch", hello.architecture},
          {"x-rope-theta", rope_theta_text(hello.rope_theta)},
          {"x-layer-zeroed", zeroed_text(hello)}};
}

}  // namespace

std::string rope_theta_text(double theta) {
  return theta == std::floor(theta) ? fmt::format("{:.1f}", theta) : fmt::format("{}", theta);
}

std::string zeroed_text(const messages::Hello& hello) {
  return fmt::format("{}", fmt::join(hello.zeroed, ","));
}

std::vector<http::Header> attestation_headers(const messages::Hello& hello) {
  std::vector<http::Header> headers = attested(hello);
  if (hello.zeroed.empty()) headers.pop_back();
  return headers;
}

std::optional<api::ApiError> check_assertions(const http::Request& request,
                                              const messages::Hello& hello) {
  for (const auto& [name, value] : attested(hello)) {
    const std::string asserted = without_spaces(request.header(name));
    if (asserted.empty() || asserted == value) continue;
    if (name == "x-rope-theta" && is_number(asserted, hello.rope_theta)) continue;
    return api::make_api_error(400, fmt::format("{}: the request insists on \"{}\", the model that "
                                                "is loaded has \"{}\"",
                                                name, asserted, value));
  }
  return std::nullopt;
}

void attest(api::Usage& usage, const http::Request& request, const messages::Hello& hello) {
  usage.layer_zeroed = zeroed_text(hello);
  if (without_spaces(request.header("anthropic-beta")).find(kDetailsBeta) == std::string::npos) {
    return;
  }
  usage.details =
      api::ArchitectureDetails{.rope_base_freq = hello.rope_theta, .zeroed_layers = hello.zeroed};
}

}  // namespace cicada::server
