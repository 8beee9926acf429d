#include "cicada/metrics/server_metrics.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace cicada::metrics {
namespace {

constexpr const char* kLabels = "{model_name=\"m\",engine=\"0\"";

class ServerMetricsTest : public testing::Test {
 protected:
  // The value behind a series, as text; empty when it is not there.
  std::string value(const std::string& series) const {
    std::istringstream lines(registry_.text());
    for (std::string line; std::getline(lines, line);) {
      const std::size_t space = line.rfind(' ');
      if (line.substr(0, space) == series) return line.substr(space + 1);
    }
    return "";
  }
  std::string common(const std::string& name, const std::string& more = "") const {
    return value(name + kLabels + more + "}");
  }
  // Family -> type, from the "# TYPE" lines.
  std::map<std::string, std::string> types() const {
    std::map<std::string, std::string> result;
    std::istringstream lines(registry_.text());
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string hash;
      std::string keyword;
      std::string name;
      std::string type;
      words >> hash >> keyword >> name >> type;
      if (hash == "#" && keyword == "TYPE") result[name] = type;
    }
    return result;
  }

  Registry registry_;
  ServerMetrics metrics_{
      registry_, {.model_name = "m", .max_context_tokens = 8192, .handlers = {"/v1/models"}}};
};

TEST_F(ServerMetricsTest, FamiliesAreThoseOfVllmUnderThreeNames) {
  const std::map<std::string, std::string> expected = {
      {"num_requests_running", "gauge"},
      {"num_requests_waiting", "gauge"},
      {"num_requests_waiting_by_reason", "gauge"},
      {"kv_cache_usage_perc", "gauge"},
      {"engine_sleep_state", "gauge"},
      {"cache_config_info", "gauge"},
      {"prefix_cache_queries_total", "counter"},
      {"prefix_cache_hits_total", "counter"},
      {"num_preemptions_total", "counter"},
      {"prompt_tokens_total", "counter"},
      {"prompt_tokens_by_source_total", "counter"},
      {"prompt_tokens_cached_total", "counter"},
      {"generation_tokens_total", "counter"},
      {"request_success_total", "counter"},
      {"corrupted_requests_total", "counter"},
      {"admission_rejections_total", "counter"},
      {"time_to_first_token_seconds", "histogram"},
      {"inter_token_latency_seconds", "histogram"},
      {"request_time_per_output_token_seconds", "histogram"},
      {"e2e_request_latency_seconds", "histogram"},
      {"request_queue_time_seconds", "histogram"},
      {"request_inference_time_seconds", "histogram"},
      {"request_prefill_time_seconds", "histogram"},
      {"request_decode_time_seconds", "histogram"},
      {"request_prompt_tokens", "histogram"},
      {"request_generation_tokens", "histogram"},
      {"request_max_num_generation_tokens", "histogram"},
      {"request_params_n", "histogram"},
      {"request_params_max_tokens", "histogram"},
      {"request_prefill_kv_computed_tokens", "histogram"},
  };
  metrics_.set_cache_config({});
  const auto found = types();
  std::set<std::string> unexpected;
  for (const auto& [name, type] : found) {
    if (name.starts_with("vllm:")) unexpected.insert(name.substr(5));
  }
  for (const auto& [name, type] : expected) {
    for (const char* prefix : {"vllm:", "cicada:", "vllm_"}) {
      const auto at = found.find(prefix + name);
      ASSERT_NE(at, found.end()) << prefix << name;
      EXPECT_EQ(at->second, type) << name;
    }
    unexpected.erase(name);
  }
  // vLLM's histogram under the name of a counter has no type.
  for (const char* prefix : {"vllm:", "cicada:", "vllm_"}) {
    EXPECT_EQ(common(prefix + std::string("iteration_tokens_total_count")), "0") << prefix;
  }
  // The names of before.
  EXPECT_EQ(unexpected,
            (std::set<std::string>{"gpu_cache_usage_perc", "time_per_output_token_seconds"}));
}

TEST_F(ServerMetricsTest, OldNamesShowTheSameNumbers) {
  metrics_.kv_cache_usage.set(0.25);
  metrics_.inter_token_latency_seconds.observe(0.03);
  for (const char* name : {"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc",
                           "cicada:kv_cache_usage_perc", "vllm_gpu_cache_usage_perc"}) {
    EXPECT_EQ(common(name), "0.25") << name;
  }
  EXPECT_EQ(common("vllm:time_per_output_token_seconds_sum"), "0.03");
  EXPECT_EQ(common("vllm:time_per_output_token_seconds_bucket", ",le=\"0.05\""), "1");
}

TEST_F(ServerMetricsTest, EveryRequestIsCountedOnceInEveryHistogramOfRequests) {
  metrics_.count_finished({.ended = Ended::kStop,
                           .e2e_seconds = 2,
                           .queue_seconds = 0.25,
                           .prefill_seconds = 0.5,
                           .decode_seconds = 1,
                           .prompt_tokens = 100,
                           .cached_tokens = 60,
                           .generation_tokens = 11,
                           .max_generation_tokens = 7,
                           .max_tokens_param = 500});
  metrics_.count_finished({.ended = Ended::kLength, .generation_tokens = 1});
  metrics_.count_finished({.ended = Ended::kAbort});
  metrics_.count_finished({.ended = Ended::kError});
  for (const char* reason : {"stop", "length", "abort", "error"}) {
    EXPECT_EQ(
        common("vllm:request_success_total", ",finished_reason=\"" + std::string(reason) + "\""),
        "1");
  }
  for (const char* name : {"e2e_request_latency_seconds", "request_queue_time_seconds",
                           "request_inference_time_seconds", "request_prefill_time_seconds",
                           "request_decode_time_seconds", "request_prompt_tokens",
                           "request_generation_tokens", "request_prefill_kv_computed_tokens",
                           "request_params_n", "request_max_num_generation_tokens"}) {
    EXPECT_EQ(common("vllm:" + std::string(name) + "_count"), "4") << name;
  }
  EXPECT_EQ(common("vllm:request_inference_time_seconds_sum"), "1.5");
  EXPECT_EQ(common("vllm:request_prefill_kv_computed_tokens_sum"), "40");
  EXPECT_EQ(common("vllm:request_time_per_output_token_seconds_sum"), "0.1");
  EXPECT_EQ(common("vllm:request_time_per_output_token_seconds_count"), "1");
  EXPECT_EQ(common("vllm:request_params_max_tokens_count"), "1");
  EXPECT_EQ(common("vllm:request_max_num_generation_tokens_sum"), "7");
}

TEST_F(ServerMetricsTest, PromptTokensAreThoseOfTheirSources) {
  metrics_.count_prompt(100, 60);
  metrics_.count_prompt(10, 20);  // no more can be cached than there are
  EXPECT_EQ(common("vllm:prompt_tokens_total"), "110");
  EXPECT_EQ(common("vllm:prompt_tokens_cached_total"), "70");
  EXPECT_EQ(common("vllm:prompt_tokens_by_source_total", ",source=\"local_compute\""), "40");
  EXPECT_EQ(common("vllm:prompt_tokens_by_source_total", ",source=\"local_cache_hit\""), "70");
}

TEST_F(ServerMetricsTest, BoundsOfTokensEndAtTheContext) {
  EXPECT_EQ(common("vllm:request_prompt_tokens_bucket", ",le=\"5000.0\""), "0");
  EXPECT_EQ(common("vllm:request_prompt_tokens_bucket", ",le=\"10000.0\""), "");
  EXPECT_EQ(one_two_five_bounds(100), (std::vector<double>{1, 2, 5, 10, 20, 50, 100}));
  EXPECT_EQ(one_two_five_bounds(19), (std::vector<double>{1, 2, 5, 10}));
  EXPECT_TRUE(one_two_five_bounds(0).empty());
  EXPECT_LT(one_two_five_bounds(~std::uint64_t{0}).size(), 50U);
}

TEST_F(ServerMetricsTest, ClientsCannotMakeSeries) {
  metrics_.count_http("/v1/models", "GET", 200, 0.1);
  metrics_.count_http("/v1/models", "GET", 204, 0.2);
  for (int i = 0; i < 50; ++i) {
    metrics_.count_http("/" + std::to_string(i), "M" + std::to_string(i), 404, 0.1);
    metrics_.count_http("/v1/models", "GET", 1000 + i, 0.1);
  }
  EXPECT_EQ(value("http_requests_total{handler=\"/v1/models\",method=\"GET\",status=\"2xx\"}"),
            "2");
  EXPECT_EQ(value("http_requests_total{handler=\"other\",method=\"other\",status=\"4xx\"}"), "50");
  EXPECT_EQ(value("http_requests_total{handler=\"/v1/models\",method=\"GET\",status=\"other\"}"),
            "50");
  EXPECT_EQ(value("http_request_duration_seconds_bucket{handler=\"other\",method=\"other\","
                  "le=\"0.1\"}"),
            "50");
}

TEST_F(ServerMetricsTest, CacheConfigIsThatOfTheLastEngine) {
  const auto info = [&](const char* pages) {
    return value(std::string("vllm:cache_config_info{block_size=\"64\",cache_dtype=\"f16\","
                             "enable_prefix_caching=\"True\",num_gpu_blocks=\"") +
                 pages + "\",engine=\"0\"}");
  };
  const CacheConfig config{.num_pages = 10, .page_tokens = 64, .dtype = "f16"};
  metrics_.set_cache_config(config);
  EXPECT_EQ(info("10"), "1");
  metrics_.set_cache_config({.num_pages = 20, .page_tokens = 64, .dtype = "f16"});
  EXPECT_EQ(info("10"), "0");
  EXPECT_EQ(info("20"), "1");
  metrics_.set_cache_config(config);
  EXPECT_EQ(info("10"), "1");
  EXPECT_EQ(info("20"), "0");
}

TEST_F(ServerMetricsTest, OurOwnAndTheProcesssNumbersAreThere) {
  registry_.before_text([this] {
    metrics_.set_process({.cpu_seconds = 1.5, .resident_bytes = 4096, .start_time_seconds = 1e9});
  });
  metrics_.tokens_per_millisecond.set(0.75);
  metrics_.engine_restarts.add();
  EXPECT_EQ(value("process_cpu_seconds_total"), "1.5");
  EXPECT_EQ(value("process_resident_memory_bytes"), "4096");
  EXPECT_EQ(std::stod(value("process_start_time_seconds")), 1e9);
  EXPECT_EQ(common("cicada:tokens_per_millisecond"), "0.75");
  EXPECT_EQ(common("cicada:engine_restarts_total"), "1");
  EXPECT_EQ(common("cicada:replayed_requests_total"), "0");
  EXPECT_EQ(common("cicada:cancelled_requests_total"), "0");
  EXPECT_EQ(common("vllm:engine_sleep_state", ",sleep_state=\"awake\""), "1");
}

}  // namespace
}  // namespace cicada::metrics
