#include "cicada/server/telemetry.h"

#include <utility>

#include "cicada/platform/process_stats.h"

namespace cicada::server {
namespace {

double seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

std::string_view name(metrics::Ended ended) {
  switch (ended) {
    case metrics::Ended::kStop:
      return "stop";
    case metrics::Ended::kLength:
      return "length";
    case metrics::Ended::kAbort:
      return "abort";
    case metrics::Ended::kError:
      return "error";
  }
  return "";
}

void measure_process(metrics::ServerMetrics& metrics) {
  const auto stats = platform::process_stats();
  if (!stats) return;
  metrics.set_process({.cpu_seconds = stats->cpu_seconds,
                       .resident_bytes = static_cast<double>(stats->resident_bytes),
                       .virtual_bytes = static_cast<double>(stats->virtual_bytes),
                       .open_fds = static_cast<double>(stats->open_fds),
                       .max_fds = static_cast<double>(stats->max_fds),
                       .start_time_seconds = stats->start_time_seconds});
}

}  // namespace

void Telemetry::start(const messages::Hello& hello, const std::string& model_name,
                      std::vector<std::string> handlers) {
  metrics_ = std::make_unique<metrics::ServerMetrics>(
      registry_, metrics::ServerMetricsOptions{.model_name = model_name,
                                               .max_context_tokens = hello.context,
                                               .handlers = std::move(handlers)});
  metrics_->set_cache_config(
      {.num_pages = hello.kv_pages, .page_tokens = hello.page_tokens, .dtype = "auto"});
  registry_.before_text([metrics = metrics_.get()] { measure_process(*metrics); });
}

void Telemetry::note_stats(const messages::Stats& stats) {
  if (!metrics_) return;
  metrics::ServerMetrics& to = *metrics_;
  to.requests_running.set(stats.running);
  to.requests_waiting.set(stats.waiting);
  to.requests_waiting_for_capacity.set(stats.waiting);
  to.kv_cache_usage.set(stats.kv_pages == 0 ? 0.0
                                            : static_cast<double>(stats.kv_pages_held) /
                                                  static_cast<double>(stats.kv_pages));
  // A new engine counts from zero.
  if (stats.steps < last_stats_.steps) last_stats_ = {};
  to.prefix_cache_queries_tokens.add(stats.prefix_queries_tokens -
                                     last_stats_.prefix_queries_tokens);
  to.prefix_cache_hits_tokens.add(stats.prefix_hits_tokens - last_stats_.prefix_hits_tokens);
  to.preemptions.add(stats.preemptions - last_stats_.preemptions);
  to.corrupted_requests.add(stats.corrupted - last_stats_.corrupted);
  for (const std::uint32_t tokens : stats.step_tokens) to.iteration_tokens.observe(tokens);
  const std::uint64_t tokens = stats.prefill_tokens + stats.decode_tokens -
                               last_stats_.prefill_tokens - last_stats_.decode_tokens;
  const std::uint64_t busy_ns = stats.busy_ns - last_stats_.busy_ns;
  if (busy_ns > 0) {
    to.tokens_per_millisecond.set(static_cast<double>(tokens) * 1e6 / static_cast<double>(busy_ns));
  }
  last_stats_ = stats;
}

void Telemetry::note_restart(std::size_t replayed) {
  if (!metrics_) return;
  last_stats_ = {};
  metrics_->engine_restarts.add();
  metrics_->replayed_requests.add(replayed);
}

void Telemetry::note_rejected(bool for_tokens) {
  if (!metrics_) return;
  (for_tokens ? metrics_->rejected_for_tokens : metrics_->rejected_for_requests).add();
}

void Telemetry::note_first_token(std::chrono::steady_clock::duration since_arrival,
                                 std::uint64_t prompt_tokens, std::uint64_t cached_tokens) {
  if (!metrics_) return;
  metrics_->time_to_first_token_seconds.observe(seconds(since_arrival));
  metrics_->count_prompt(prompt_tokens, cached_tokens);
}

void Telemetry::note_token(std::optional<std::chrono::steady_clock::duration> since_last) {
  if (!metrics_) return;
  metrics_->generation_tokens.add();
  if (since_last) metrics_->inter_token_latency_seconds.observe(seconds(*since_last));
}

void Telemetry::note_end(const Ending& ending) {
  if (metrics_) {
    metrics_->count_http(ending.handler, ending.method, ending.status, seconds(ending.time));
    if (ending.answer) metrics_->count_finished(*ending.answer);
    if (ending.was_cancelled) metrics_->cancelled_requests.add();
  }
  // Questions about the state come all the time.
  const LogLevel level = ending.answer || ending.status >= 400 ? LogLevel::kInfo : LogLevel::kDebug;
  log_->event(level, "request", [&](json::Writer& writer) {
    writer.field("request_id", ending.request_id)
        .field("method", ending.method)
        .field("route", ending.handler)
        .field("status", ending.status)
        .field("ms", seconds(ending.time) * 1e3);
    if (!ending.tenant.empty()) writer.field("key", ending.tenant);
    if (!ending.answer) return;
    const metrics::FinishedRequest& answer = *ending.answer;
    writer.field("prompt_tokens", answer.prompt_tokens)
        .field("cached_tokens", answer.cached_tokens)
        .field("completion_tokens", answer.generation_tokens)
        .field("queue_ms", answer.queue_seconds * 1e3)
        .field("prefill_ms", answer.prefill_seconds * 1e3)
        .field("decode_ms", answer.decode_seconds * 1e3)
        .field("ended", ending.was_cancelled ? "cancelled" : name(answer.ended));
  });
}

}  // namespace cicada::server
