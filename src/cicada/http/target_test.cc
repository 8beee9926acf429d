#include "cicada/http/target.h"

#include <gtest/gtest.h>

namespace cicada::http {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

TEST(Target, PathAndQueryAreDecoded) {
  const auto target = parse_target("/v1/models/a%2Fb%20c+d?limit=20&after=x%3Dy+z&flag&&=v");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->path, "/v1/models/a/b c+d");
  EXPECT_EQ(target->query, (Pairs{{"limit", "20"}, {"after", "x=y z"}, {"flag", ""}, {"", "v"}}));
}

TEST(Target, AbsoluteFormLosesSchemeAndHost) {
  EXPECT_EQ(parse_target("http://host:80/a?b=c")->path, "/a");
  EXPECT_EQ(parse_target("http://host:80/a?b=c")->query, (Pairs{{"b", "c"}}));
  EXPECT_EQ(parse_target("http://host")->path, "/");
  EXPECT_EQ(parse_target("http://host?b=c")->query, (Pairs{{"b", "c"}}));
  // A path is no scheme.
  EXPECT_EQ(parse_target("/x://y/z")->path, "/x://y/z");
  EXPECT_EQ(parse_target("*")->path, "*");
}

TEST(Target, BadTargetsAreErrors) {
  for (const char* bad : {"", "a", "?a=b", "/%", "/%4", "/a%zz", "/a%4g", "/%00", "/?%00", "/?a=%",
                          "*x", "host:80"}) {
    const auto target = parse_target(bad);
    ASSERT_FALSE(target) << bad;
    EXPECT_EQ(target.error().code(), Code::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace cicada::http
