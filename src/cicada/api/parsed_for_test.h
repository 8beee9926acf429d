// What tests ask of parsers' answers.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "cicada/api/error.h"

namespace cicada::api {

// A body and what is said about it.
struct Refusal {
  std::string_view body;
  std::string_view message;
};

// The sentence of a refusal, which names the field that `param` holds; empty where it was parsed.
template <typename T>
std::string refusal(const Parsed<T>& parsed) {
  if (parsed) return {};
  const ApiError& error = parsed.error();
  EXPECT_EQ(error.status, 400) << error.message;
  EXPECT_EQ(error.type, "invalid_request_error") << error.message;
  EXPECT_TRUE(error.message.starts_with(error.param.empty() ? "the body: " : error.param + ": "))
      << error.param << " / " << error.message;
  return error.message;
}

// The members of `more` (", \"a\": 1") in a body that is good without them.
inline std::string with(std::string_view good, std::string_view more) {
  std::string body(good.substr(0, good.size() - 1));
  return body.append(", ").append(more).append("}");
}

}  // namespace cicada::api
