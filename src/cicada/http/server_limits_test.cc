// What the server itself refuses, and when.
#include <gtest/gtest.h>

#include "cicada/http/server.h"
#include "cicada/http/server_for_test.h"

namespace cicada::http {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kGet = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
constexpr std::string_view kPost = "POST / HTTP/1.1\r\nHost: h\r\n";

ServerOptions with(ServerLimits limits) { return {.port = 0, .limits = limits}; }

// The reply is the server's own, and the connection ends behind it.
void expect_refusal(RawClient& client, int status) {
  const RawReply reply = client.read_reply();
  EXPECT_EQ(reply.status, status);
  EXPECT_FALSE(reply.body.empty());
  EXPECT_TRUE(reply.has("\r\nconnection: close\r\n"));
  EXPECT_TRUE(client.is_ended());
  EXPECT_FALSE(client.was_reset());
}

TEST(ServerLimits, HeadersBeyondTheLimitAreRefused431) {
  TestServer server(echo, with({.max_header_bytes = 200}));
  for (const std::size_t size : {200U, 201U}) {
    RawClient client = server.connect();
    std::string head = "GET / HTTP/1.1\r\nHost: h\r\nX: ";
    head += std::string(size - head.size() - 4, 'x') + "\r\n\r\n";
    client.send(head);
    if (size == 200) {
      EXPECT_EQ(client.read_reply().status, 200);
    } else {
      expect_refusal(client, 431);
    }
  }
  RawClient endless = server.connect();
  endless.send("GET /" + std::string(400, 'x'));
  expect_refusal(endless, 431);
}

TEST(ServerLimits, BodiesBeyondTheLimitAreRefused413BeforeTheyCome) {
  TestServer server(echo, with({.max_body_bytes = 10}));
  RawClient fits = server.connect();
  fits.send(std::string(kPost) + "Content-Length: 10\r\n\r\n0123456789");
  EXPECT_EQ(fits.read_reply().status, 200);
  RawClient declared = server.connect();
  declared.send(std::string(kPost) + "Content-Length: 11\r\n\r\n");
  expect_refusal(declared, 413);
  RawClient expecting = server.connect();
  expecting.send(std::string(kPost) + "Expect: 100-continue\r\nContent-Length: 11\r\n\r\n");
  expect_refusal(expecting, 413);
  RawClient chunked = server.connect();
  chunked.send(std::string(kPost) + "Transfer-Encoding: chunked\r\n\r\n6\r\n012345\r\n5\r\n");
  expect_refusal(chunked, 413);
}

TEST(ServerLimits, ClientThatReadsOnlyBehindItsUploadStillGetsThe413) {
  TestServer server(echo, with({.max_body_bytes = 1000}));
  RawClient client = server.connect();
  const std::string body(8 << 20, 'b');
  EXPECT_TRUE(client.send(std::string(kPost) + "Content-Length: " + std::to_string(body.size()) +
                          "\r\n\r\n"));
  EXPECT_TRUE(client.send(body)) << "the upload is taken and thrown away";
  expect_refusal(client, 413);
}

TEST(ServerLimits, MalformedRequestsAreRefusedInWords) {
  TestServer server(echo);
  struct Case {
    std::string text;
    int status;
  };
  for (const auto& [text, status] : std::vector<Case>{
           {"hello\r\n\r\n", 400},
           {"GET /%00 HTTP/1.1\r\nHost: h\r\n\r\n", 400},
           {"GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n", 400},
           {std::string(kPost) + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
           {std::string(kPost) + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n\r\n", 400},
           {std::string(kPost) + "Transfer-Encoding: gzip\r\n\r\n", 501},
           {std::string(kPost) + "Expect: cake\r\n\r\n", 417}}) {
    RawClient client = server.connect();
    client.send(text);
    SCOPED_TRACE(text);
    expect_refusal(client, status);
  }
}

TEST(ServerLimits, TooManyConnectionsAreTold503) {
  TestServer server(echo, with({.max_connections = 2}));
  RawClient first = server.connect();
  RawClient second = server.connect();
  EXPECT_EQ(first.ask(kGet).status, 200);
  EXPECT_EQ(second.ask(kGet).status, 200);
  RawClient third = server.connect();
  third.send(kGet);
  expect_refusal(third, 503);
  EXPECT_EQ(first.ask(kGet).status, 200) << "the others go on";
  first.close();
  second.close();
  third.close();
  EXPECT_TRUE(server.becomes_true([&] { return server.server().num_connections() == 0; }));
  EXPECT_EQ(server.connect().ask(kGet).status, 200) << "a place is free again";
}

TEST(ServerLimits, SlowHeadersAreRefused408) {
  TestServer server(echo, with({.header_time = milliseconds(30)}));
  RawClient client = server.connect();
  client.send("GET / HT");
  expect_refusal(client, 408);
}

TEST(ServerLimits, HeaderTimeRunsFromTheFirstByteWhateverComesLater) {
  TestServer server(echo, with({.header_time = milliseconds(60)}));
  RawClient client = server.connect();
  const auto begin = std::chrono::steady_clock::now();
  std::jthread dripping([fd = client.fd()](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      if (::send(fd, "G", 1, MSG_NOSIGNAL) < 0) return;
      std::this_thread::sleep_for(milliseconds(10));
    }
  });
  EXPECT_EQ(client.read_reply().status, 408);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(55));
}

TEST(ServerLimits, SlowBodiesAreRefused408) {
  TestServer server(echo, with({.body_time = milliseconds(30)}));
  RawClient client = server.connect();
  client.send(std::string(kPost) + "Content-Length: 5\r\n\r\nab");
  expect_refusal(client, 408);
}

TEST(ServerLimits, IdleConnectionsAreClosedWithoutAWord) {
  TestServer server(echo, with({.idle_time = milliseconds(30)}));
  RawClient silent = server.connect();
  RawClient served = server.connect();
  EXPECT_EQ(served.ask(kGet).status, 200);
  EXPECT_TRUE(silent.is_ended());
  EXPECT_TRUE(served.is_ended());
}

TEST(ServerLimits, NoTimeRunsWhileAHandlerWorks) {
  Held held;
  TestServer server(held.handler(), with({.header_time = milliseconds(10),
                                          .body_time = milliseconds(10),
                                          .idle_time = milliseconds(10),
                                          .write_time = milliseconds(10)}));
  RawClient client = server.connect();
  client.send(std::string(kPost) + "Content-Length: 2\r\n\r\nab");
  auto exchange = held.take();
  ASSERT_TRUE(exchange);
  std::this_thread::sleep_for(milliseconds(50));
  server.on_loop([&] { echo(exchange); });
  server.let_go(exchange);
  EXPECT_EQ(client.read_reply().status, 200);
}

}  // namespace
}  // namespace cicada::http
