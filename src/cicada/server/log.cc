#include "cicada/server/log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>

namespace cicada::server {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"error", "warning", "info", "debug"};

std::string now_text() {
  const auto now = std::chrono::system_clock::now();
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(now)), milliseconds);
}

}  // namespace

Result<LogLevel> parse_log_level(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto found = std::find(kNames.begin(), kNames.end(), lower);
  if (found == kNames.end()) {
    return fail(Code::kInvalidArgument, "log level \"{}\": {} are allowed", name,
                fmt::join(kNames, ", "));
  }
  return static_cast<LogLevel>(found - kNames.begin());
}

void Log::message(LogLevel level, std::string_view text) const {
  event(level, "message", [text](json::Writer& writer) { writer.field("text", text); });
}

void Log::event(LogLevel level, std::string_view name,
                const std::function<void(json::Writer&)>& fields) const {
  if (!is_on(level)) return;
  json::Writer writer;
  writer.begin_object()
      .field("time", now_text())
      .field("level", kNames[static_cast<std::size_t>(level)])
      .field("event", name);
  fields(writer);
  writer.end_object();
  sink_(writer.take());
}

}  // namespace cicada::server
