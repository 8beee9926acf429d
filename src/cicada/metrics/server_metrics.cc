#include "cicada/metrics/server_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace cicada::metrics {
namespace {

// Buckets of vLLM's histograms (vllm/v1/metrics/loggers.py), in seconds.
constexpr std::array kFirstTokenBounds = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,
                                          0.25,  0.5,   0.75, 1.0,  2.5,  5.0,  7.5,  10.0,
                                          20.0,  40.0,  80.0, 160., 640., 2560.};
constexpr std::array kTokenBounds = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2,  0.3,  0.4, 0.5,
                                     0.75, 1.0,   2.5,  5.0,   7.5, 10.0, 20.0, 40.0, 80.0};
constexpr std::array kRequestBounds = {0.3,  0.5,  0.8,  1.0,  1.5,   2.0,   2.5,
                                       5.0,  10.0, 15.0, 20.0, 30.0,  40.0,  50.0,
                                       60.0, 120., 240., 480., 960.0, 1920., 7680.};
// Counts.
constexpr std::array kIterationBounds = {1.,   8.,    16.,   32.,   64.,   128.,  256.,
                                         512., 1024., 2048., 4096., 8192., 16384.};
constexpr std::array kChoicesBounds = {1., 2., 5., 10., 20.};
// Those of the HTTP instrumentation that vLLM uses (0.1, 0.5 and 1), and some beside them.
constexpr std::array kHttpBounds = {0.01, 0.05, 0.1, 0.5, 1., 5., 10., 60.};

constexpr std::array<std::string_view, kNumEnded> kEndedNames = {"stop", "length", "abort",
                                                                 "error"};
constexpr std::array<std::string_view, 8> kMethods = {"GET",    "HEAD",    "POST",  "PUT",
                                                      "DELETE", "OPTIONS", "PATCH", "CONNECT"};

Description http_requests() {
  return {.name = "http_requests_total", .help = "Replies sent, by route, method and status."};
}
Description http_duration() {
  return {.name = "http_request_duration_seconds",
          .help = "From a request's first byte to its reply's last."};
}
Description cache_config_info() {
  return {.name = "vllm:cache_config_info",
          .help = "What the cache of keys and values is made of.",
          .aliases = {"cicada:cache_config_info", "vllm_cache_config_info"}};
}

}  // namespace

std::vector<double> one_two_five_bounds(std::uint64_t most) {
  std::vector<double> bounds;
  constexpr double kEnd = 1e15;  // far beyond any context, and exact
  for (double power = 1; power < kEnd; power *= 10) {
    for (const double factor : {1, 2, 5}) {
      if (factor * power > static_cast<double>(most)) return bounds;
      bounds.push_back(factor * power);
    }
  }
  return bounds;
}

// Makes families with their names and the labels that all series have.
struct ServerMetrics::Maker {
  Registry& registry;
  const ServerMetricsOptions& options;
  const Labels common = {{"model_name", options.model_name}, {"engine", options.engine}};
  const std::vector<double> token_bounds = one_two_five_bounds(options.max_context_tokens);

  using Extra = std::pair<std::string, std::string>;

  // `old_name`: what vLLM called it before.
  static Description vllm(const std::string& name, std::string help,
                          const std::string& old_name = "") {
    Description family{.name = "vllm:" + name,
                       .help = std::move(help),
                       .aliases = {"cicada:" + name, "vllm_" + name}};
    if (!old_name.empty()) {
      family.aliases.push_back("vllm:" + old_name);
      family.aliases.push_back("vllm_" + old_name);
    }
    return family;
  }
  static Description own(const std::string& name, std::string help) {
    return {.name = "cicada:" + name, .help = std::move(help)};
  }

  Counter& counter(const Description& family) const { return registry.counter(family, common); }
  Gauge& gauge(const Description& family) const { return registry.gauge(family, common); }
  Histogram& histogram(const Description& family, std::span<const double> bounds) const {
    return registry.histogram(family, bounds, common);
  }
  Labels with(Extra extra) const {
    Labels labels = common;
    labels.push_back(std::move(extra));
    return labels;
  }

  Gauge& waiting_because(std::string reason) const {
    return registry.gauge(vllm("num_requests_waiting_by_reason", "Requests waiting, by reason."),
                          with({"reason", std::move(reason)}));
  }
  Counter& rejected_by(std::string reason) const {
    return registry.counter(vllm("admission_rejections_total", "Requests refused, by limit."),
                            with({"reason", std::move(reason)}));
  }
  Counter& prompt_tokens_from(std::string source) const {
    return registry.counter(
        vllm("prompt_tokens_by_source_total", "Tokens of prompts, by where they came from."),
        with({"source", std::move(source)}));
  }
  std::array<Counter*, kNumEnded> finished() const {
    std::array<Counter*, kNumEnded> counters{};
    for (std::size_t i = 0; i < kNumEnded; ++i) {
      counters[i] =
          &registry.counter(vllm("request_success_total", "Requests that ended, by reason."),
                            with({"finished_reason", std::string(kEndedNames[i])}));
    }
    return counters;
  }
  Histogram& request_seconds(const std::string& name, std::string help) const {
    return histogram(vllm(name, std::move(help)), kRequestBounds);
  }
  Histogram& request_tokens(const std::string& name, std::string help) const {
    return histogram(vllm(name, std::move(help)), token_bounds);
  }
  // An engine that is there is awake: this server has no sleep.
  void sleep_state() const {
    for (const char* state : {"awake", "weights_offloaded", "discard_all"}) {
      registry
          .gauge(vllm("engine_sleep_state", "1 for the state the engine is in."),
                 with({"sleep_state", state}))
          .set(std::string_view(state) == "awake" ? 1 : 0);
    }
  }
};

ServerMetrics::ServerMetrics(Registry& registry, const ServerMetricsOptions& options)
    : ServerMetrics(Maker{.registry = registry, .options = options}) {
  Maker{.registry = registry, .options = options}.sleep_state();
}

ServerMetrics::ServerMetrics(const Maker& make)
    : registry_(make.registry),
      handlers_(make.options.handlers),
      engine_(make.options.engine),
      requests_running(make.gauge(make.vllm("num_requests_running", "Requests being computed."))),
      requests_waiting(make.gauge(make.vllm("num_requests_waiting", "Requests in the queue."))),
      requests_waiting_for_capacity(make.waiting_because("capacity")),
      requests_deferred(make.waiting_because("deferred")),
      kv_cache_usage(make.gauge(make.vllm(
          "kv_cache_usage_perc", "Share of the KV cache that requests hold; 1 is all of it.",
          "gpu_cache_usage_perc"))),
      prefix_cache_queries_tokens(make.counter(make.vllm(
          "prefix_cache_queries_total", "Tokens that were looked for in the prefix cache."))),
      prefix_cache_hits_tokens(make.counter(
          make.vllm("prefix_cache_hits_total", "Tokens that were found in the prefix cache."))),
      preemptions(make.counter(make.vllm("num_preemptions_total",
                                         "Requests put back into the queue for lack of room."))),
      generation_tokens(make.counter(make.vllm("generation_tokens_total", "Tokens of answers."))),
      corrupted_requests(make.counter(
          make.vllm("corrupted_requests_total", "Requests whose logits were not numbers."))),
      rejected_for_requests(make.rejected_by("max_num_queued_reqs")),
      rejected_for_tokens(make.rejected_by("max_num_queued_tokens")),
      time_to_first_token_seconds(make.histogram(
          make.vllm("time_to_first_token_seconds", "From a request's arrival to its first token."),
          kFirstTokenBounds)),
      inter_token_latency_seconds(make.histogram(
          make.vllm("inter_token_latency_seconds", "Between two tokens of an answer.",
                    "time_per_output_token_seconds"),
          kTokenBounds)),
      iteration_tokens(make.histogram(
          make.vllm("iteration_tokens_total", "Tokens computed in one step of the engine."),
          kIterationBounds)),
      tokens_per_millisecond(make.gauge(make.own(
          "tokens_per_millisecond", "Tokens of prompts and answers in a millisecond of work."))),
      engine_restarts(
          make.counter(make.own("engine_restarts_total", "Engines started because one was lost."))),
      replayed_requests(make.counter(
          make.own("replayed_requests_total", "Requests that went on in another engine."))),
      cancelled_requests(make.counter(
          make.own("cancelled_requests_total", "Requests that their clients gave up."))),
      prompt_tokens_(make.counter(make.vllm("prompt_tokens_total", "Tokens of prompts."))),
      prompt_tokens_computed_(make.prompt_tokens_from("local_compute")),
      prompt_tokens_from_cache_(make.prompt_tokens_from("local_cache_hit")),
      prompt_tokens_cached_(make.counter(
          make.vllm("prompt_tokens_cached_total", "Tokens of prompts that were in the cache."))),
      requests_(make.finished()),
      e2e_seconds_(make.request_seconds("e2e_request_latency_seconds",
                                        "From a request's arrival to its last token.")),
      queue_seconds_(make.request_seconds("request_queue_time_seconds", "Waiting in the queue.")),
      inference_seconds_(make.request_seconds("request_inference_time_seconds",
                                              "From a request's start to its last token.")),
      prefill_seconds_(make.request_seconds("request_prefill_time_seconds",
                                            "From a request's start to its first token.")),
      decode_seconds_(make.request_seconds("request_decode_time_seconds",
                                           "From a request's first token to its last.")),
      time_per_output_token_seconds_(make.histogram(
          make.vllm("request_time_per_output_token_seconds",
                    "Mean time between two tokens of an answer, once for each request."),
          kTokenBounds)),
      request_prompt_tokens_(
          make.request_tokens("request_prompt_tokens", "Tokens of a request's prompt.")),
      request_generation_tokens_(
          make.request_tokens("request_generation_tokens", "Tokens of a request's answer.")),
      request_max_generation_tokens_(make.request_tokens(
          "request_max_num_generation_tokens", "Tokens of the longest of a request's choices.")),
      request_params_n_(make.histogram(
          make.vllm("request_params_n", "Choices that a request asked for."), kChoicesBounds)),
      request_params_max_tokens_(make.request_tokens("request_params_max_tokens",
                                                     "The max_tokens that a request asked for.")),
      request_computed_tokens_(
          make.request_tokens("request_prefill_kv_computed_tokens",
                              "Tokens of a request's prompt that were not in the cache.")),
      process_cpu_seconds_(make.registry.total(
          {.name = "process_cpu_seconds_total", .help = "Processor time, user and system."})),
      process_resident_bytes_(make.registry.gauge(
          {.name = "process_resident_memory_bytes", .help = "Memory that is resident."})),
      process_virtual_bytes_(make.registry.gauge(
          {.name = "process_virtual_memory_bytes", .help = "Address space in use."})),
      process_open_fds_(
          make.registry.gauge({.name = "process_open_fds", .help = "Descriptors that are open."})),
      process_max_fds_(make.registry.gauge(
          {.name = "process_max_fds", .help = "Descriptors that may be open."})),
      process_start_time_seconds_(make.registry.gauge(
          {.name = "process_start_time_seconds", .help = "Start of the process, since 1970."})) {}

void ServerMetrics::count_prompt(std::uint64_t prompt_tokens, std::uint64_t cached_tokens) {
  cached_tokens = std::min(cached_tokens, prompt_tokens);
  prompt_tokens_.add(prompt_tokens);
  prompt_tokens_computed_.add(prompt_tokens - cached_tokens);
  prompt_tokens_from_cache_.add(cached_tokens);
  prompt_tokens_cached_.add(cached_tokens);
}

void ServerMetrics::count_finished(const FinishedRequest& request) {
  requests_[static_cast<std::size_t>(request.ended)]->add();
  e2e_seconds_.observe(request.e2e_seconds);
  queue_seconds_.observe(request.queue_seconds);
  inference_seconds_.observe(request.prefill_seconds + request.decode_seconds);
  prefill_seconds_.observe(request.prefill_seconds);
  decode_seconds_.observe(request.decode_seconds);
  if (request.generation_tokens > 1) {
    time_per_output_token_seconds_.observe(request.decode_seconds /
                                           static_cast<double>(request.generation_tokens - 1));
  }
  const auto observe = [](Histogram& histogram, std::uint64_t count) {
    histogram.observe(static_cast<double>(count));
  };
  observe(request_prompt_tokens_, request.prompt_tokens);
  observe(request_computed_tokens_,
          request.prompt_tokens - std::min(request.cached_tokens, request.prompt_tokens));
  observe(request_generation_tokens_, request.generation_tokens);
  observe(request_params_n_, request.n_param);
  observe(request_max_generation_tokens_, request.max_generation_tokens);
  if (request.max_tokens_param > 0) observe(request_params_max_tokens_, request.max_tokens_param);
}

void ServerMetrics::count_http(std::string_view handler, std::string_view method, int status,
                               double seconds) {
  // What clients make up must not make series.
  const bool is_known = std::ranges::find(handlers_, handler) != handlers_.end();
  const bool is_method = std::ranges::find(kMethods, method) != kMethods.end();
  Labels labels = {{"handler", std::string(is_known ? handler : "other")},
                   {"method", std::string(is_method ? method : "other")}};
  registry_.histogram(http_duration(), kHttpBounds, labels).observe(seconds);
  const bool is_status = status >= 100 && status <= 599;
  labels.emplace_back("status", is_status ? fmt::format("{}xx", status / 100) : "other");
  registry_.counter(http_requests(), labels).add();
}

void ServerMetrics::set_cache_config(const CacheConfig& config) {
  Gauge& gauge = registry_.gauge(
      cache_config_info(), {{"block_size", fmt::format("{}", config.page_tokens)},
                            {"cache_dtype", config.dtype},
                            {"enable_prefix_caching", config.has_prefix_cache ? "True" : "False"},
                            {"num_gpu_blocks", fmt::format("{}", config.num_pages)},
                            {"engine", engine_}});
  if (cache_config_ != nullptr) cache_config_->set(0);
  cache_config_ = &gauge;
  gauge.set(1);
}

void ServerMetrics::set_process(const ProcessNumbers& numbers) {
  process_cpu_seconds_.set(numbers.cpu_seconds);
  process_resident_bytes_.set(numbers.resident_bytes);
  process_virtual_bytes_.set(numbers.virtual_bytes);
  process_open_fds_.set(numbers.open_fds);
  process_max_fds_.set(numbers.max_fds);
  process_start_time_seconds_.set(numbers.start_time_seconds);
}

}  // namespace cicada::metrics
