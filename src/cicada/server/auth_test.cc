#include "cicada/server/auth.h"

#include <gtest/gtest.h>

namespace cicada::server {
namespace {

http::Request with(std::string name, std::string value) {
  http::Request request;
  request.headers.push_back({std::move(name), std::move(value)});
  return request;
}

TEST(Auth, WithoutKeysEverybodyIsNobody) {
  const Auth auth(std::vector<ApiKey>{});
  EXPECT_EQ(auth.find({}), "");
}

TEST(Auth, TakesAKeyInEitherHeader) {
  const Auth auth({{.name = "a", .secret = "one"}, {.name = "b", .secret = "two"}});
  EXPECT_EQ(auth.find(with("x-api-key", "two")), "b");
  EXPECT_EQ(auth.find(with("Authorization", "Bearer one")), "a");
  EXPECT_EQ(auth.find(with("authorization", "bearer  one ")), "a");
}

TEST(Auth, RefusesWhatIsNoKey) {
  const Auth auth(std::vector<ApiKey>{{.name = "a", .secret = "one"}});
  EXPECT_EQ(auth.find({}), std::nullopt);
  for (const char* secret : {"", "on", "onee", "oneone", "One", "two"}) {
    EXPECT_EQ(auth.find(with("x-api-key", secret)), std::nullopt) << secret;
  }
  EXPECT_EQ(auth.find(with("authorization", "one")), std::nullopt);
  EXPECT_EQ(auth.find(with("authorization", "Basic one")), std::nullopt);
}

TEST(Auth, ReadsAFileOfKeys) {
  const auto keys = parse_keys("# ours\n\nann: s3cret \r\nbare\n");
  ASSERT_TRUE(keys.has_value());
  ASSERT_EQ(keys->size(), 2U);
  EXPECT_EQ((*keys)[0].name, "ann");
  EXPECT_EQ((*keys)[0].secret, "s3cret");
  EXPECT_EQ((*keys)[1].secret, "bare");
  EXPECT_TRUE((*keys)[1].is_unnamed);
}

TEST(Auth, AFileWithoutKeysOrWithHalfOnesIsAnError) {
  EXPECT_FALSE(parse_keys("").has_value());
  EXPECT_FALSE(parse_keys("# nothing\n").has_value());
  const auto half = parse_keys("ann:\n");
  ASSERT_FALSE(half.has_value());
  EXPECT_NE(half.error().message().find("line 1"), std::string::npos);
}

}  // namespace
}  // namespace cicada::server
