// Fuzzes every parser of bodies: the first byte chooses one, the rest is the body. Any bytes give a
// request or a refusal in words, and what parses drives a writer whose frames are all valid.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/api/anthropic.h"
#include "cicada/api/models.h"
#include "cicada/api/openai.h"
#include "cicada/api/reply.h"
#include "cicada/base/check.h"

namespace api = cicada::api;
namespace json = cicada::json;

namespace {

constexpr json::Limits kLimits{.max_bytes = 1 << 16, .max_depth = 16};

void check_error(const api::ApiError& error) {
  CICADA_CHECK(error.status >= 400 && error.status < 500, "the client is at fault");
  CICADA_CHECK(!error.message.empty() && error.message.find('\n') == std::string::npos,
               "one sentence");
  CICADA_CHECK(json::parse(api::error_body(error, "req_1")).has_value(), "an envelope");
}

// Frames end with a blank line; a data line holds JSON, or [DONE].
void check_frames(std::string_view frames) {
  while (!frames.empty()) {
    const std::size_t end = frames.find("\n\n");
    CICADA_CHECK(end != frames.npos, "frames are whole");
    std::string_view frame = frames.substr(0, end);
    frames.remove_prefix(end + 2);
    if (frame.starts_with("event: ")) frame.remove_prefix(frame.find('\n') + 1);
    CICADA_CHECK(frame.find_first_of("\r\n") == frame.npos, "data is one line");
    if (frame == ": ping" || frame == "data: [DONE]") continue;
    CICADA_CHECK(frame.starts_with("data: "), "data or comment");
    CICADA_CHECK(json::parse(frame.substr(6)).has_value(), "data is JSON");
  }
}

void check_piece(const api::GenerateRequest& request, const std::string& piece) {
  if (request.is_stream) {
    check_frames(piece);
  } else {
    CICADA_CHECK(piece.empty(), "a whole reply has no pieces");
  }
}

void drive(const api::GenerateRequest& request, std::string_view text) {
  const auto writer = api::make_reply_writer(
      request, {.id = "id", .model = request.model, .created_unix_s = 1, .request_id = "req_1"});
  const std::string front(text.substr(0, 100));
  const std::vector<api::TokenLogprob> logprobs = {{{front, -1.5F}, {{front, -1.5F}, {"b", -2}}}};
  check_piece(request, writer->begin({}));
  check_piece(request, writer->ping());
  check_piece(request, writer->thinking(0, front));
  check_piece(request, writer->text(0, front, logprobs));
  check_piece(request, writer->tool_call(0, 0, front, front));
  check_piece(request, writer->tool_arguments(0, 0, front));
  check_piece(request, writer->finish(0, api::StopReason::kStopSequence, front));
  const std::string last = writer->end({});
  if (request.is_stream) {
    check_frames(last);
  } else {
    CICADA_CHECK(json::parse(last).has_value(), "a body is JSON");
  }
}

void check_request(const api::Parsed<api::GenerateRequest>& parsed, std::string_view text) {
  if (!parsed) return check_error(parsed.error());
  const api::GenerateRequest& request = *parsed;
  for (const std::string& stop : request.stop) CICADA_CHECK(!stop.empty(), "no empty stops");
  CICADA_CHECK(request.n >= 1 && request.n <= 128, "n is bounded");
  CICADA_CHECK(!request.messages.empty() || !request.prompts.empty(), "something is asked");
  for (const api::CacheMark& mark : request.cache_marks) {
    CICADA_CHECK(mark.message < request.messages.size(), "marks are on messages");
  }
  drive(request, text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 6) {
    case 0:
      check_request(api::parse_messages(text, kLimits), text);
      break;
    case 1:
      check_request(api::parse_count_tokens(text, kLimits), text);
      break;
    case 2:
      check_request(api::parse_chat_completions(text, kLimits), text);
      break;
    case 3:
      check_request(api::parse_completions(text, kLimits), text);
      break;
    case 4:
      if (const auto parsed = api::parse_tokenize(text, kLimits); !parsed) {
        check_error(parsed.error());
      }
      break;
    default:
      if (const auto parsed = api::parse_detokenize(text, kLimits); !parsed) {
        check_error(parsed.error());
      }
      break;
  }
  return 0;
}
