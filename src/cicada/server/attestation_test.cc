#include "cicada/server/attestation.h"

#include <gtest/gtest.h>

namespace cicada::server {
namespace {

messages::Hello hello(std::vector<std::string> zeroed) {
  return {.architecture = "llama", .rope_theta = 100000, .zeroed = std::move(zeroed)};
}

http::Request with(std::string name, std::string value) {
  http::Request request;
  request.headers.push_back({std::move(name), std::move(value)});
  return request;
}

TEST(Attestation, ABaseHasADigitBehindThePoint) {
  EXPECT_EQ(rope_theta_text(500000), "500000.0");
  EXPECT_EQ(rope_theta_text(10000.25), "10000.25");
}

TEST(Attestation, ZeroedPartsAreAHeaderOnlyWhereThereAreSome) {
  EXPECT_EQ(attestation_headers(hello({})).size(), 2U);
  const auto headers = attestation_headers(hello({"rel_pos_proj", "blk.7"}));
  ASSERT_EQ(headers.size(), 3U);
  EXPECT_EQ(headers[2].name, "x-layer-zeroed");
  EXPECT_EQ(headers[2].value, "rel_pos_proj,blk.7");
}

TEST(Attestation, AnAssertionThatIsNotSoIsRefused) {
  const messages::Hello own = hello({"rel_pos_proj"});
  EXPECT_FALSE(check_assertions({}, own).has_value());
  EXPECT_FALSE(check_assertions(with("x-model-arch", "llama"), own).has_value());
  EXPECT_FALSE(check_assertions(with("X-Layer-Zeroed", " rel_pos_proj "), own).has_value());
  for (const char* theta : {"100000.0", "100000", "1e5"}) {
    EXPECT_FALSE(check_assertions(with("x-rope-theta", theta), own).has_value()) << theta;
  }
  for (const auto& [name, value] : {std::pair{"x-model-arch", "cicada-v1"},
                                    {"x-rope-theta", "500000.0"},
                                    {"x-rope-theta", "100000x"},
                                    {"x-layer-zeroed", "blk.1"}}) {
    const auto error = check_assertions(with(name, value), own);
    ASSERT_TRUE(error.has_value()) << name;
    EXPECT_EQ(error->status, 400);
    EXPECT_NE(error->message.find(value), std::string::npos);
  }
}

TEST(Attestation, DetailsComeWhereTheyAreAskedFor) {
  api::Usage usage;
  attest(usage, {}, hello({"blk.3"}));
  EXPECT_EQ(usage.layer_zeroed, "blk.3");
  EXPECT_FALSE(usage.details.has_value());
  attest(usage, with("anthropic-beta", "other, architecture-details-2024-08"), hello({"blk.3"}));
  ASSERT_TRUE(usage.details.has_value());
  EXPECT_EQ(usage.details->rope_base_freq, 100000);
  EXPECT_EQ(usage.details->zeroed_layers, std::vector<std::string>{"blk.3"});
}

}  // namespace
}  // namespace cicada::server
