#include "cicada/server/app.h"

#include <fmt/format.h>

#include <chrono>

namespace cicada::server {

std::int64_t unix_time_s() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

namespace {

api::ApiError is_full(const std::string& why) {
  api::ApiError error = api::make_api_error(529, "the server is full: " + why);
  error.retry_after_s = 1;
  return error;
}

}  // namespace

std::optional<std::string> App::served_name(std::string_view asked) const {
  if (asked.empty()) return config.model_names.front();
  for (const std::string& name : config.model_names) {
    const bool is_pattern = name.ends_with('*');
    const std::string_view stem = std::string_view(name).substr(0, name.size() - 1);
    // Who asks by a pattern is answered by the name that was asked for.
    if (is_pattern ? asked.starts_with(stem) : asked == name) return std::string(asked);
  }
  return std::nullopt;
}

std::optional<api::ApiError> App::admit(std::size_t count) {
  if (is_draining) {
    return api::make_api_error(503, "the server is stopping; running answers are being finished");
  }
  if (count > max_admitted()) {
    return api::make_api_error(
        400, fmt::format("found {} choices, allowed at most {}: so many run and wait here at once",
                         count, max_admitted()));
  }
  if (num_admitted + count > max_admitted()) {
    telemetry.note_rejected(false);
    return is_full(fmt::format("{} requests are running or waiting, {} are allowed", num_admitted,
                               max_admitted()));
  }
  num_admitted += count;
  return std::nullopt;
}

std::optional<api::ApiError> App::admit_tokens(std::uint64_t tokens) const {
  const std::uint64_t active = hub.prompt_tokens();
  if (hub.num_active() == 0 || active + tokens <= config.max_queue_tokens) return std::nullopt;
  telemetry.note_rejected(true);
  return is_full(
      fmt::format("prompts of {} tokens are running or waiting, with this one of {} tokens they "
                  "would be more than the {} that are allowed",
                  active, tokens, config.max_queue_tokens));
}

}  // namespace cicada::server
