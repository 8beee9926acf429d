// Errors as both APIs say them: one table of statuses, one envelope that both vendors' SDKs read.
// Threads: values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cicada/base/error.h"

namespace cicada::api {

struct ApiError {
  int status = 500;
  std::string type;     // Anthropic's: "invalid_request_error"
  std::string message;  // one sentence
  std::string code;     // OpenAI's: "model_not_found"; empty: null
  std::string param;    // the field at fault, where known; empty: null
  std::optional<std::uint32_t> retry_after_s;
};

// The status of a code and the sentence of an error. kInternal says nothing about our insides.
ApiError to_api_error(const Error& error);
// With the type that belongs to the status.
ApiError make_api_error(int status, std::string message, std::string code = {},
                        std::string param = {});
std::string_view type_of_status(int status);

// {"type":"error","error":{"type","message","code","param"},"request_id":…}
std::string error_body(const ApiError& error, std::string_view request_id);

}  // namespace cicada::api
