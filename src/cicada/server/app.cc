#include "cicada/server/app.h"

#include <fmt/format.h>

#include <chrono>

namespace cicada::server {

std::int64_t unix_time_s() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

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
  const bool has_places = num_admitted + count <= max_admitted();
  if (!has_places || (hub.prompt_tokens() >= config.max_queue_tokens && num_admitted > 0)) {
    telemetry.note_rejected(has_places);
    api::ApiError error = api::make_api_error(
        529, fmt::format("the server is full: {} requests are running or waiting, {} are allowed",
                         num_admitted, max_admitted()));
    error.retry_after_s = 1;
    return error;
  }
  num_admitted += count;
  return std::nullopt;
}

}  // namespace cicada::server
