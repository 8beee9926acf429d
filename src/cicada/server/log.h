// The server's log: a line of JSON an event, with request ids and without text of conversations.
// Threads: any.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "cicada/base/result.h"
#include "cicada/json/writer.h"

namespace cicada::server {

enum class LogLevel : std::uint8_t { kError, kWarning, kInfo, kDebug };
// In any case. Errors: kInvalidArgument with what is allowed.
Result<LogLevel> parse_log_level(std::string_view name);

class Log {
 public:
  // `sink` gets whole lines, without their end.
  Log(LogLevel level, std::function<void(std::string_view)> sink)
      : level_(level), sink_(std::move(sink)) {}

  bool is_on(LogLevel level) const { return level <= level_; }
  void message(LogLevel level, std::string_view text) const;
  // {"time","level","event", and what `fields` writes}.
  void event(LogLevel level, std::string_view name,
             const std::function<void(json::Writer&)>& fields) const;

 private:
  LogLevel level_;
  std::function<void(std::string_view)> sink_;
};

}  // namespace cicada::server
