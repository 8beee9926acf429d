// What the server tells of itself: metrics, and a line of the log for each request.
// Threads: the loop's; text() may be asked while it runs.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/messages/messages.h"
#include "cicada/metrics/registry.h"
#include "cicada/metrics/server_metrics.h"
#include "cicada/server/log.h"

namespace cicada::server {

// What is known of a request when its reply has left.
struct Ending {
  std::string_view request_id;
  std::string_view handler;  // the route
  std::string_view method;
  std::string_view tenant;
  int status = 0;
  std::chrono::steady_clock::duration time{0};
  // Of an answer; nothing for other requests.
  std::optional<metrics::FinishedRequest> answer;
  bool was_cancelled = false;  // by its client
};

class Telemetry {
 public:
  explicit Telemetry(const Log& log) : log_(&log) {}

  // Metrics are counted from here on. Without it there are none.
  void start(const messages::Hello& hello, const std::string& model_name,
             std::vector<std::string> handlers);
  bool has_metrics() const { return metrics_ != nullptr; }
  std::string text() const { return registry_.text(); }

  const Log& log() const { return *log_; }

  void note_stats(const messages::Stats& stats);
  void note_restart(std::size_t replayed);
  void note_rejected(bool for_tokens);
  void note_first_token(std::chrono::steady_clock::duration since_arrival,
                        std::uint64_t prompt_tokens, std::uint64_t cached_tokens);
  void note_token(std::optional<std::chrono::steady_clock::duration> since_last);
  void note_end(const Ending& ending);

 private:
  const Log* log_;
  metrics::Registry registry_;
  std::unique_ptr<metrics::ServerMetrics> metrics_;
  messages::Stats last_stats_;  // of this engine
};

}  // namespace cicada::server
