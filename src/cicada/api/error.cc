#include "cicada/api/error.h"

#include "cicada/json/writer.h"

namespace cicada::api {
namespace {

int status_of(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
    case Code::kUnsupported:
    case Code::kCorrupt:
    case Code::kDeadlineExceeded:
    case Code::kOutOfCapacity:
      return 400;
    case Code::kNotFound:
      return 404;
    case Code::kCancelled:
      return 499;
    case Code::kOverloaded:
      return 529;
    case Code::kIo:
    case Code::kOutOfMemory:
    case Code::kInternal:
      return 500;
  }
  return 500;
}

// The member `error` of both envelopes.
void write_error(json::Writer& writer, const ApiError& error) {
  writer.key("error").begin_object();
  writer.field("type", error.type).field("message", error.message);
  writer.text_or_null("code", error.code);
  writer.text_or_null("param", error.param);
  if (!error.details_code.empty()) {
    writer.key("details").begin_object();
    writer.field("error_code", error.details_code).end_object();
  }
  writer.end_object();
}

}  // namespace

std::string_view type_of_status(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 402:
      return "billing_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 408:
    case 504:
      return "timeout_error";
    case 409:
      return "conflict_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 529:
      return "overloaded_error";
    default:
      return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

ApiError make_api_error(int status, std::string message, std::string code, std::string param) {
  return {.status = status,
          .type = std::string(type_of_status(status)),
          .message = std::move(message),
          .code = std::move(code),
          .param = std::move(param)};
}

ApiError to_api_error(const Error& error) {
  const int status = status_of(error.code());
  // Paths, sizes and names of our parts belong in the log.
  if (status == 500) {
    return make_api_error(status, "the server failed; its log says more under the request's id");
  }
  ApiError out = make_api_error(status, error.to_string());
  if (error.code() == Code::kOutOfCapacity) out.code = "context_length_exceeded";
  if (error.code() == Code::kOverloaded) out.retry_after_s = 1;
  return out;
}

std::string error_body(const ApiError& error, std::string_view request_id) {
  json::Writer writer;
  writer.begin_object().field("type", "error");
  write_error(writer, error);
  writer.text_or_null("request_id", request_id);
  writer.end_object();
  return writer.take();
}

std::string error_object(const ApiError& error) {
  json::Writer writer;
  writer.begin_object();
  write_error(writer, error);
  writer.end_object();
  return writer.take();
}

}  // namespace cicada::api
