#include "cicada/http/reply_head.h"

#include <gtest/gtest.h>

namespace cicada::http {
namespace {

constexpr std::chrono::system_clock::time_point kTime{std::chrono::seconds(784'111'777)};

TEST(ReplyHead, SaysStatusDateFramingAndHeaders) {
  EXPECT_EQ(reply_head(200, {{"Content-Type", "text/plain"}}, {.content_length = 5}, kTime),
            "HTTP/1.1 200 OK\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\ncontent-length: 5\r\n"
            "Content-Type: text/plain\r\n\r\n");
  EXPECT_EQ(
      reply_head(529, {}, {.is_chunked = true, .connection = Framing::Connection::kClose}, kTime),
      "HTTP/1.1 529 Overloaded\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
      "transfer-encoding: chunked\r\nconnection: close\r\n\r\n");
}

TEST(ReplyHead, HeadersThatCouldSplitOrReframeTheReplyAreLeftOut) {
  const std::string bare = reply_head(200, {}, {}, kTime);
  for (const Header& header : std::vector<Header>{{"a", "b\r\nc: d"},
                                                  {"a", "b\n"},
                                                  {"a", std::string("b\0c", 3)},
                                                  {"a\r\nb", "c"},
                                                  {"a b", "c"},
                                                  {"", "c"},
                                                  {"Content-Length", "7"},
                                                  {"Transfer-Encoding", "chunked"},
                                                  {"Connection", "upgrade"},
                                                  {"Date", "now"}}) {
    EXPECT_EQ(reply_head(200, {header}, {}, kTime), bare) << header.name << ": " << header.value;
  }
  EXPECT_NE(reply_head(200, {{"a", "tab\tand \xc3\xa9"}}, {}, kTime), bare);
}

TEST(ReplyHead, DatesOfLeapDaysAndCenturiesAreRight) {
  EXPECT_EQ(http_date(std::chrono::system_clock::time_point(std::chrono::seconds(1'709'164'800))),
            "Thu, 29 Feb 2024 00:00:00 GMT");
  EXPECT_EQ(http_date(std::chrono::system_clock::time_point(std::chrono::seconds(946'684'799))),
            "Fri, 31 Dec 1999 23:59:59 GMT");
}

}  // namespace
}  // namespace cicada::http
