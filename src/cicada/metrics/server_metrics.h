// What a server tells of itself: vLLM's families with its names, labels, units and buckets, so that
// dashboards made for it show this server; the usual ones of HTTP and of the process; and a few of
// our own. Each of vLLM's is written as "vllm:x", "cicada:x" and "vllm_x".
//
// Left out is what this server cannot have: adapters, speculative decoding, several media, caches
// elsewhere.
// Threads: any, but set_cache_config() from one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/metrics/registry.h"

namespace cicada::metrics {

struct ServerMetricsOptions {
  std::string model_name;  // as clients name it
  std::string engine = "0";
  std::uint64_t max_context_tokens = 0;  // buckets of tokens end there
  // Routes that are told apart in the families of HTTP, as patterns, not as asked for.
  std::vector<std::string> handlers;
};

// How a request ended, in vLLM's words.
enum class Ended : std::uint8_t { kStop, kLength, kAbort, kError };
inline constexpr std::size_t kNumEnded = 4;

// A request that left the server. Times are of one monotonic clock; those of a phase that was not
// reached are 0.
struct FinishedRequest {
  Ended ended = Ended::kStop;
  double e2e_seconds = 0;      // from its arrival to its last token
  double queue_seconds = 0;    // waiting for the engine
  double prefill_seconds = 0;  // from its start to its first token
  double decode_seconds = 0;   // from its first token to its last
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_tokens = 0;  // of the prompt
  std::uint64_t generation_tokens = 0;
  std::uint64_t max_generation_tokens = 0;  // of its longest choice
  std::uint64_t max_tokens_param = 0;       // as asked for; 0: not asked
  std::uint64_t n_param = 1;                // choices
};

struct CacheConfig {
  std::uint64_t num_pages = 0;
  std::uint64_t page_tokens = 0;
  std::string dtype;
  bool has_prefix_cache = true;

  bool operator==(const CacheConfig&) const = default;
};

// The process's own numbers, as platform/process_stats.h measures them.
struct ProcessNumbers {
  double cpu_seconds = 0;
  double resident_bytes = 0;
  double virtual_bytes = 0;
  double open_fds = 0;
  double max_fds = 0;
  double start_time_seconds = 0;  // since 1970
};

class ServerMetrics {
  struct Maker;

 public:
  // The registry is borrowed and outlives this.
  ServerMetrics(Registry& registry, const ServerMetricsOptions& options);

  // A prompt was read: after its first token. Not for one that is read again.
  void count_prompt(std::uint64_t prompt_tokens, std::uint64_t cached_tokens);
  // Once for each request, however it ended.
  void count_finished(const FinishedRequest& request);
  // Once for each reply, when its last byte was handed over.
  void count_http(std::string_view handler, std::string_view method, int status, double seconds);
  // When an engine has said what it has.
  void set_cache_config(const CacheConfig& config);
  void set_process(const ProcessNumbers& numbers);

 private:
  explicit ServerMetrics(const Maker& make);

  Registry& registry_;
  const std::vector<std::string> handlers_;
  const std::string engine_;
  Gauge* cache_config_ = nullptr;  // the series that is 1; of the registry

 public:
  // The engine's state, as it says it.
  Gauge& requests_running;
  Gauge& requests_waiting;
  Gauge& requests_waiting_for_capacity;
  Gauge& requests_deferred;
  Gauge& kv_cache_usage;  // 0 to 1: pages held by requests, of all

  Counter& prefix_cache_queries_tokens;
  Counter& prefix_cache_hits_tokens;
  Counter& preemptions;
  Counter& generation_tokens;
  Counter& corrupted_requests;     // whose logits were no numbers
  Counter& rejected_for_requests;  // the queue had its number of requests
  Counter& rejected_for_tokens;    // or of tokens

  Histogram& time_to_first_token_seconds;  // from the arrival at the front, before tokenising
  Histogram& inter_token_latency_seconds;
  Histogram& iteration_tokens;  // prompts' and answers', of one step of the engine

  Gauge& tokens_per_millisecond;
  Counter& engine_restarts;
  Counter& replayed_requests;   // went on in another engine
  Counter& cancelled_requests;  // by their clients

 private:
  Counter& prompt_tokens_;
  Counter& prompt_tokens_computed_;
  Counter& prompt_tokens_from_cache_;
  Counter& prompt_tokens_cached_;
  std::array<Counter*, kNumEnded> requests_;

  Histogram& e2e_seconds_;
  Histogram& queue_seconds_;
  Histogram& inference_seconds_;
  Histogram& prefill_seconds_;
  Histogram& decode_seconds_;
  Histogram& time_per_output_token_seconds_;
  Histogram& request_prompt_tokens_;
  Histogram& request_generation_tokens_;
  Histogram& request_max_generation_tokens_;
  Histogram& request_params_n_;
  Histogram& request_params_max_tokens_;
  Histogram& request_computed_tokens_;

  Total& process_cpu_seconds_;
  Gauge& process_resident_bytes_;
  Gauge& process_virtual_bytes_;
  Gauge& process_open_fds_;
  Gauge& process_max_fds_;
  Gauge& process_start_time_seconds_;
};

// 1, 2, 5, 10, 20, 50 … as far as they are at most `most`.
std::vector<double> one_two_five_bounds(std::uint64_t most);

}  // namespace cicada::metrics
