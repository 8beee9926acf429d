// What an operator chose. Threads: read-only once the server runs.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cicada/http/server.h"
#include "cicada/server/log.h"

namespace cicada::server {

struct ApiKey {
  std::string name;  // whose it is: fairness and prefixes are by this
  std::string secret;
  bool is_unnamed = false;  // its name only counts
};

struct ServerConfig {
  std::string version;
  // What clients may call the model; replies carry the first. One that ends in '*' stands for all
  // that begin so.
  std::vector<std::string> model_names;
  std::int64_t model_created_unix_s = 0;
  http::ServerOptions http;
  std::vector<ApiKey> keys;                                 // empty: nobody needs one
  std::vector<std::string> cors_origins;                    // "*": all
  std::size_t max_queue = 256;                              // requests beyond those that run
  std::uint64_t max_queue_tokens = std::uint64_t{1} << 22;  // of prompts of all that are active
  std::chrono::milliseconds ping_interval{5000};
  std::chrono::milliseconds begin_after{1000};  // a stream begins by then, whatever it waits for
  std::chrono::milliseconds drain_time{30'000};
  bool has_metrics = true;
  LogLevel log_level = LogLevel::kInfo;
  std::size_t max_stream_buffer_bytes = std::size_t{256} << 10;  // then its answer pauses
};

}  // namespace cicada::server
