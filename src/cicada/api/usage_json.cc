#include "cicada/api/usage_json.h"

#include <cmath>

namespace cicada::api {
namespace {

// Thetas are whole numbers, and read better so than as "5e+05".
void write_theta(json::Writer& writer, double theta) {
  constexpr double kMaxExact = 9007199254740992.0;  // 2^53
  if (theta >= 0 && theta <= kMaxExact && theta == std::floor(theta)) {
    writer.field("rope_base_freq", static_cast<std::uint64_t>(theta));
  } else {
    writer.field("rope_base_freq", theta);
  }
}

void write_attestation(json::Writer& writer, const Usage& usage) {
  writer.field("layer_zeroed", usage.layer_zeroed);
  if (!usage.details) return;
  writer.key("architecture_details").begin_object();
  write_theta(writer, usage.details->rope_base_freq);
  writer.key("zeroed_layers").begin_array();
  for (const std::string& name : usage.details->zeroed_layers) writer.string(name);
  writer.end_array().end_object();
}

}  // namespace

void write_anthropic_usage(json::Writer& writer, const Usage& usage, UsagePlace place) {
  // Their input leaves out what the cache read or took in; the three add up to the prompt.
  const std::uint64_t created = usage.cache_create_5m + usage.cache_create_1h;
  const std::uint64_t cached = usage.cache_read + created;
  const std::uint64_t input = usage.prompt_tokens > cached ? usage.prompt_tokens - cached : 0;
  writer.key("usage").begin_object();
  writer.field("input_tokens", input).field("output_tokens", usage.completion_tokens);
  writer.field("cache_creation_input_tokens", created);
  writer.field("cache_read_input_tokens", usage.cache_read);
  writer.key("cache_creation").begin_object();
  writer.field("ephemeral_5m_input_tokens", usage.cache_create_5m);
  writer.field("ephemeral_1h_input_tokens", usage.cache_create_1h).end_object();
  if (place != UsagePlace::kDelta) writer.field("service_tier", "standard");
  if (place != UsagePlace::kStart) {
    writer.key("output_tokens_details").begin_object();
    writer.field("thinking_tokens", usage.thinking_tokens).end_object();
  }
  write_attestation(writer, usage);
  writer.end_object();
}

void write_openai_usage(json::Writer& writer, const Usage& usage) {
  writer.key("usage").begin_object();
  writer.field("prompt_tokens", usage.prompt_tokens);
  writer.field("completion_tokens", usage.completion_tokens);
  writer.field("total_tokens", usage.prompt_tokens + usage.completion_tokens);
  writer.key("prompt_tokens_details").begin_object();
  writer.field("cached_tokens", usage.cache_read);
  writer.field("cache_write_tokens", usage.cache_create_5m + usage.cache_create_1h).end_object();
  writer.key("completion_tokens_details").begin_object();
  writer.field("reasoning_tokens", usage.thinking_tokens).end_object();
  write_attestation(writer, usage);
  writer.end_object();
}

std::string token_counts(const Usage& usage) {
  json::Writer writer;
  writer.begin_object();
  writer.field("prompt_tokens", usage.prompt_tokens);
  writer.field("completion_tokens", usage.completion_tokens);
  writer.field("total_tokens", usage.prompt_tokens + usage.completion_tokens).end_object();
  return writer.take();
}

}  // namespace cicada::api
