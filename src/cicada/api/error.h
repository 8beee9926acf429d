// Errors as both APIs say them: one table of statuses, one envelope that both vendors' SDKs read.
// Threads: values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cicada/base/error.h"
#include "cicada/base/result.h"

namespace cicada::api {

struct ApiError {
  int status = 500;
  std::string type;     // Anthropic's: "invalid_request_error"
  std::string message;  // one sentence
  std::string code;     // OpenAI's: "model_not_found"; empty: null
  std::string param;    // the field at fault, where known; empty: null
  std::optional<std::uint32_t> retry_after_s;
  std::string details_code;  // `error.details.error_code`, which Anthropic's helpers act on; empty:
                             // there are no details
};

// A value, or what the client is told.
template <typename T>
class [[nodiscard]] Parsed : public tl::expected<T, ApiError> {
 public:
  using tl::expected<T, ApiError>::expected;
};

// The status of a code and the sentence of an error:
//   400 kInvalidArgument, kUnsupported, kCorrupt (of what was sent), kDeadlineExceeded (only
//       templates have a limit of work, and it is the conversation that made them exceed it),
//       kOutOfCapacity (with OpenAI's code "context_length_exceeded")
//   404 kNotFound    499 kCancelled    529 kOverloaded (to be tried again after a second)
//   500 kIo, kOutOfMemory, kInternal: these say nothing about our insides.
ApiError to_api_error(const Error& error);
// With the type that belongs to the status.
ApiError make_api_error(int status, std::string message, std::string code = {},
                        std::string param = {});
std::string_view type_of_status(int status);

// {"type":"error","error":{"type","message","code","param"},"request_id":…}, with "details" in it
// where there is a details_code.
std::string error_body(const ApiError& error, std::string_view request_id);
// {"error":{…}} alone, as an OpenAI stream says it.
std::string error_object(const ApiError& error);

}  // namespace cicada::api

namespace cicada {

// Lets CICADA_TRY and CICADA_ASSIGN pass an ApiError on.
inline tl::unexpected<api::ApiError> fail(api::ApiError error) {
  return tl::unexpected<api::ApiError>(std::move(error));
}

}  // namespace cicada
