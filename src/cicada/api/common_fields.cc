#include "cicada/api/common_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>

#include "cicada/base/text.h"

namespace cicada::api {
namespace {

constexpr std::int64_t kMaxU32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kMaxStopBytes = 4096;
constexpr std::size_t kMaxBiases = std::size_t{1} << 18;  // more than any vocabulary here
constexpr std::uint32_t kMaxHintBytes = 1U << 20;
constexpr std::uint32_t kMaxHintMs = 60'000;

// Moves a number that is there into `out`. Returns whether it was there.
Parsed<bool> read_float(const Fields& body, std::string_view key, Range range, float& out) {
  CICADA_ASSIGN(const auto value, body.number(key, range));
  if (value) out = static_cast<float>(*value);
  return value.has_value();
}

Parsed<void> read_top_k(const Fields& body, GenerateRequest& request) {
  CICADA_ASSIGN(const auto top_k, body.integer("top_k", {-1, kMaxU32}));
  if (!top_k) return {};
  request.has_top_k = true;
  request.sampling.top_k = *top_k < 0 ? 0 : static_cast<std::uint32_t>(*top_k);
  return {};
}

Parsed<void> read_seed(const Fields& body, GenerateRequest& request) {
  const auto found = body.find("seed");
  if (!found) return {};
  std::int64_t value = 0;
  if (found->get(value) == simdjson::SUCCESS) {
    request.sampling.seed = static_cast<std::uint64_t>(value);
  } else if (found->get(request.sampling.seed) != simdjson::SUCCESS) {
    return refuse(Path(body.path(), "seed"), *found, "an integer of at most 64 bits");
  }
  request.has_seed = true;
  return {};
}

// Ids as they come: the server knows the vocabulary. Here a null is no absent value: it stands
// where a number must.
Parsed<void> read_logit_bias(const Fields& body, GenerateRequest& request) {
  const auto found = body.find("logit_bias");
  if (!found) return {};
  const Path path(body.path(), "logit_bias");
  simdjson::dom::object biases;
  if (found->get(biases) != simdjson::SUCCESS) return refuse(path, *found, "an object");
  for (const auto& [key, value] : biases) {
    const auto id = whole_text_number<std::int64_t>(key);
    if (!id) return refuse(path, "the key " + quoted(key), "the decimal number of a token");
    const std::string number = std::to_string(*id);
    CICADA_ASSIGN(const double bias, as_number(value, Path(path, number), {-100, 100}));
    if (request.logit_bias.size() == kMaxBiases) {
      return refuse(path, "more", fmt::format("at most {} tokens", kMaxBiases));
    }
    request.logit_bias.emplace_back(*id, static_cast<float>(bias));
  }
  std::ranges::sort(request.logit_bias, {}, &std::pair<std::int64_t, float>::first);
  const auto twice =
      std::ranges::adjacent_find(request.logit_bias, {}, &std::pair<std::int64_t, float>::first);
  if (twice != request.logit_bias.end()) {
    return refuse(path, fmt::format("token {} twice", twice->first), "each token once");
  }
  return {};
}

Parsed<std::string> stop_text(json::Element element, const Path& path) {
  CICADA_ASSIGN(const std::string_view text, as_text(element, path));
  if (text.empty() || text.size() > kMaxStopBytes) {
    return refuse(path, text.empty() ? "an empty string" : fmt::format("{} bytes", text.size()),
                  fmt::format("1 to {} bytes", kMaxStopBytes));
  }
  return std::string(text);
}

// "20ms"
std::optional<BufferHint> milliseconds_hint(std::string_view text) {
  if (!text.ends_with("ms")) return std::nullopt;
  const auto amount = whole_text_number<std::uint32_t>(text.substr(0, text.size() - 2));
  if (!amount || *amount > kMaxHintMs) return std::nullopt;
  return BufferHint{BufferHint::Unit::kMilliseconds, *amount};
}

std::optional<BufferHint> hint_of(json::Element element) {
  std::uint64_t bytes = 0;
  if (element.get(bytes) == simdjson::SUCCESS) {
    if (bytes > kMaxHintBytes) return std::nullopt;
    return BufferHint{BufferHint::Unit::kBytes, static_cast<std::uint32_t>(bytes)};
  }
  std::string_view word;
  if (element.get(word) != simdjson::SUCCESS) return std::nullopt;
  if (word == "token") return BufferHint{BufferHint::Unit::kToken, 0};
  if (word == "word") return BufferHint{BufferHint::Unit::kWord, 0};
  return milliseconds_hint(word);
}

// What a client sends that spells out a default.
bool asks_for_nothing(json::Element element) {
  bool flag = false;
  if (element.get(flag) == simdjson::SUCCESS) return !flag;
  double number = 0;
  if (element.get(number) == simdjson::SUCCESS) return number == 0;
  std::string_view text;
  if (element.get(text) == simdjson::SUCCESS) return text.empty();
  simdjson::dom::array list;
  return element.get(list) == simdjson::SUCCESS && list.size() == 0;
}

}  // namespace

Parsed<json::Document> parse_body(std::string_view body, const json::Limits& limits) {
  if (body.size() > limits.max_bytes) {
    return fail(make_api_error(413, fmt::format("the body: found {} bytes, allowed at most {}",
                                                body.size(), limits.max_bytes)));
  }
  auto document = json::parse(body, limits);
  if (!document) return fail(make_api_error(400, "the body: " + document.error().to_string()));
  return std::move(*document);
}

Parsed<void> read_sampling(const Fields& body, GenerateRequest& request) {
  messages::Sampling& to = request.sampling;
  // The vendors allow up to 1 or 2. More is sound, and tells in tests what a high one does.
  CICADA_ASSIGN(request.has_temperature, read_float(body, "temperature", {0, 100}, to.temperature));
  CICADA_ASSIGN(request.has_top_p, read_float(body, "top_p", {0, 1}, to.top_p));
  CICADA_TRY(read_top_k(body, request));
  CICADA_TRY(read_float(body, "min_p", {0, 1}, to.min_p));
  CICADA_TRY(read_float(body, "presence_penalty", {-2, 2}, to.presence_penalty));
  CICADA_TRY(read_float(body, "frequency_penalty", {-2, 2}, to.frequency_penalty));
  // A factor nearer to nothing, or larger, makes infinities of logits.
  CICADA_TRY(read_float(body, "repetition_penalty", {0.001, 1000}, to.repetition_penalty));
  CICADA_TRY(read_seed(body, request));
  return read_logit_bias(body, request);
}

Parsed<void> read_stop(const Fields& body, std::string_view key, std::size_t max_count,
                       GenerateRequest& request) {
  const auto found = body.find(key);
  if (!found) return {};
  const Path path(body.path(), key);
  if (found->is_string()) {
    CICADA_ASSIGN(std::string text, stop_text(*found, path));
    request.stop.push_back(std::move(text));
    return {};
  }
  CICADA_ASSIGN(const auto list, as_list(*found, path, "a string or an array of strings"));
  for (const json::Element element : list) {
    if (request.stop.size() == max_count) {
      return refuse(path, fmt::format("{} strings", list.size()),
                    fmt::format("at most {}", max_count));
    }
    CICADA_ASSIGN(std::string text, stop_text(element, Path(path, request.stop.size())));
    request.stop.push_back(std::move(text));
  }
  return {};
}

Parsed<void> read_stream(const Fields& body, GenerateRequest& request) {
  CICADA_ASSIGN(request.is_stream, body.boolean("stream", false));
  const auto found = body.find("buffer_hint");
  if (!found) return {};
  request.buffer_hint = hint_of(*found);
  if (request.buffer_hint) return {};
  return refuse(Path(body.path(), "buffer_hint"), *found,
                fmt::format("bytes from 0 to {}, \"token\", \"word\", or a time as \"20ms\" up to "
                            "\"{}ms\"",
                            kMaxHintBytes, kMaxHintMs));
}

Parsed<std::optional<std::uint32_t>> read_max_tokens(const Fields& body, std::string_view key) {
  CICADA_ASSIGN(const auto count, body.integer(key, {1, kMaxU32}));
  if (!count) return std::nullopt;
  return static_cast<std::uint32_t>(*count);
}

Parsed<void> refuse_if_asked(const Fields& body, std::string_view key, std::string_view sentence) {
  const auto found = body.find(key);
  if (!found || asks_for_nothing(*found)) return {};
  return unavailable(Path(body.path(), key), sentence);
}

}  // namespace cicada::api
