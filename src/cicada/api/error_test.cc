#include "cicada/api/error.h"

#include <gtest/gtest.h>

namespace cicada::api {
namespace {

TEST(ApiError, EveryStatusHasTheVendorsType) {
  struct Row {
    int status;
    std::string_view type;
  };
  for (const Row& row : {Row{400, "invalid_request_error"},
                         Row{401, "authentication_error"},
                         Row{402, "billing_error"},
                         Row{403, "permission_error"},
                         Row{404, "not_found_error"},
                         Row{405, "invalid_request_error"},
                         Row{408, "timeout_error"},
                         Row{409, "conflict_error"},
                         Row{410, "invalid_request_error"},
                         Row{412, "invalid_request_error"},
                         Row{413, "request_too_large"},
                         Row{422, "invalid_request_error"},
                         Row{429, "rate_limit_error"},
                         Row{431, "invalid_request_error"},
                         Row{499, "invalid_request_error"},
                         Row{500, "api_error"},
                         Row{501, "api_error"},
                         Row{502, "api_error"},
                         Row{503, "api_error"},
                         Row{504, "timeout_error"},
                         Row{529, "overloaded_error"}}) {
    EXPECT_EQ(type_of_status(row.status), row.type) << row.status;
    EXPECT_EQ(make_api_error(row.status, "m").type, row.type) << row.status;
  }
}

TEST(ApiError, EveryCodeHasItsStatus) {
  struct Row {
    Code code;
    int status;
  };
  for (const Row& row :
       {Row{Code::kInvalidArgument, 400}, Row{Code::kUnsupported, 400}, Row{Code::kCorrupt, 400},
        Row{Code::kDeadlineExceeded, 400}, Row{Code::kOutOfCapacity, 400},
        Row{Code::kNotFound, 404}, Row{Code::kCancelled, 499}, Row{Code::kOverloaded, 529},
        Row{Code::kIo, 500}, Row{Code::kOutOfMemory, 500}, Row{Code::kInternal, 500}}) {
    EXPECT_EQ(to_api_error(Error(row.code, "m")).status, row.status) << code_name(row.code);
  }
}

TEST(ApiError, TheClientsFaultsKeepTheirWords) {
  const ApiError error = to_api_error(
      Error(Code::kOutOfCapacity, "found 70 tokens, allowed 64").with_context("the prompt"));
  EXPECT_EQ(error.message, "the prompt: found 70 tokens, allowed 64");
  EXPECT_EQ(error.code, "context_length_exceeded");
  EXPECT_FALSE(error.retry_after_s);
  EXPECT_EQ(to_api_error(Error(Code::kOverloaded, "full")).retry_after_s, 1U);
}

TEST(ApiError, OurFaultsSayNothingOfOurInsides) {
  for (const Code code : {Code::kIo, Code::kOutOfMemory, Code::kInternal}) {
    const ApiError error = to_api_error(Error(code, "/etc/secret: 7 bytes"));
    EXPECT_EQ(error.message.find("secret"), std::string::npos);
    EXPECT_EQ(error.type, "api_error");
  }
}

TEST(ApiError, OneEnvelopeForBothVendors) {
  EXPECT_EQ(error_body(make_api_error(404, "model: no \"x\"", "model_not_found", "model"), "req_1"),
            R"({"type":"error","error":{"type":"not_found_error","message":"model: no \"x\"",)"
            R"("code":"model_not_found","param":"model"},"request_id":"req_1"})");
  EXPECT_EQ(error_body(make_api_error(500, "m"), ""),
            R"({"type":"error","error":{"type":"api_error","message":"m","code":null,)"
            R"("param":null},"request_id":null})");
}

TEST(ApiError, DetailsStandInsideTheError) {
  ApiError error = make_api_error(400, "m");
  error.details_code = "thread_unsupported_request";
  EXPECT_EQ(error_body(error, "r"),
            R"({"type":"error","error":{"type":"invalid_request_error","message":"m","code":null,)"
            R"("param":null,"details":{"error_code":"thread_unsupported_request"}},)"
            R"("request_id":"r"})");
}

TEST(ApiError, AStreamsErrorIsTheInnerObject) {
  EXPECT_EQ(error_object(make_api_error(529, "full")),
            R"({"error":{"type":"overloaded_error","message":"full","code":null,"param":null}})");
}

}  // namespace
}  // namespace cicada::api
