#include "cicada/http/server.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "cicada/http/server_for_test.h"
#include "cicada/platform/test_folder.h"

namespace cicada::http {
namespace {

constexpr std::string_view kGet = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";

TEST(Server, AnswersOneRequestAfterTheOtherOnAConnection) {
  TestServer server(echo);
  RawClient client = server.connect();
  for (const char* path : {"/one", "/two"}) {
    const RawReply reply = client.ask("GET " + std::string(path) + " HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, "GET " + std::string(path) + " ");
    EXPECT_TRUE(reply.has("\r\ndate: "));
    EXPECT_TRUE(reply.has("\r\ncontent-type: text/plain\r\n"));
    EXPECT_FALSE(reply.has("connection:"));
  }
  server.on_loop([&] { EXPECT_EQ(server.server().num_connections(), 1U); });
  EXPECT_EQ(server.server().address(), "http://127.0.0.1:" + std::to_string(server.port()));
}

TEST(Server, PipelinedRequestsAreServedInOrderOneAtATime) {
  Held held;
  TestServer server(held.handler());
  RawClient client = server.connect();
  client.send(
      "GET /1 HTTP/1.1\r\nHost: h\r\n\r\nPOST /2 HTTP/1.1\r\nHost: h\r\n"
      "Content-Length: 2\r\n\r\nabGET /3 HTTP/1.1\r\nHost: h\r\n\r\n");
  for (const char* path : {"/1", "/2", "/3"}) {
    auto exchange = held.take();
    ASSERT_TRUE(exchange);
    EXPECT_EQ(exchange->request().path, path);
    EXPECT_EQ(held.num_waiting(), 0U) << "the next one waits for the reply to this one";
    server.on_loop([&] { echo(exchange); });
    server.let_go(exchange);
    EXPECT_EQ(client.read_reply().status, 200);
  }
}

TEST(Server, Http10ConnectionEndsBehindTheReplyUnlessAskedToStay) {
  TestServer server(echo);
  RawClient client = server.connect();
  const RawReply kept = client.ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_TRUE(kept.has("\r\nconnection: keep-alive\r\n"));
  const RawReply last = client.ask("GET / HTTP/1.0\r\n\r\n");
  EXPECT_EQ(last.status, 200);
  EXPECT_TRUE(last.has("\r\nconnection: close\r\n"));
  EXPECT_TRUE(client.is_ended());
}

TEST(Server, ConnectionEndsWhereTheClientAsksForIt) {
  TestServer server(echo);
  RawClient client = server.connect();
  const RawReply reply = client.ask("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(reply.has("\r\nconnection: close\r\n"));
  EXPECT_TRUE(client.is_ended());
}

TEST(Server, SaysContinueToAClientThatWaitsWithItsBody) {
  TestServer server(echo);
  RawClient client = server.connect();
  const RawReply go_on =
      client.ask("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
  EXPECT_EQ(go_on.head, "http/1.1 100 continue\r\n\r\n");
  EXPECT_EQ(client.ask("abc").body, "POST / abc");
}

TEST(Server, HeadGetsTheHeadersOfAGet) {
  TestServer server(echo);
  RawClient client = server.connect();
  client.send("HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n");
  const RawReply reply = client.read_reply(RawClient::To::kHead);
  EXPECT_TRUE(reply.has("\r\ncontent-length: 8\r\n"));  // "HEAD /a "
  EXPECT_EQ(client.ask(kGet).body, "GET /a ");
}

TEST(Server, HandlerSeesTheWholeRequest) {
  Held held;
  TestServer server(held.handler());
  RawClient client = server.connect();
  client.send(
      "POST /v1/x?a=b HTTP/1.1\r\nHost: h\r\nX-Key: k\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n");
  client.send("2\r\nde\r\n0\r\n\r\n");
  auto exchange = held.take();
  ASSERT_TRUE(exchange);
  const Request& request = exchange->request();
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path, "/v1/x");
  EXPECT_EQ(request.query_value("a"), "b");
  EXPECT_EQ(request.header("x-key"), "k");
  EXPECT_EQ(request.body, "abcde");
  EXPECT_EQ(request.peer, "127.0.0.1");
  server.let_go(exchange);
}

TEST(Server, HandlersHeadersCannotSplitTheReply) {
  TestServer server([](const std::shared_ptr<Exchange>& exchange) {
    exchange->respond(
        {.headers = {{"x", "a\r\n\r\nHTTP/1.1 200 OK"}, {"content-length", "99"}}, .body = "ok"});
  });
  RawClient client = server.connect();
  const RawReply reply = client.ask(kGet);
  EXPECT_EQ(reply.body, "ok");
  EXPECT_FALSE(reply.has("\r\nx:"));
  EXPECT_EQ(client.ask(kGet).body, "ok");
}

TEST(Server, StatusWithoutBodyIsFramedWithoutOne) {
  TestServer server([](const std::shared_ptr<Exchange>& exchange) {
    exchange->respond({.status = 204, .body = "lost"});
  });
  RawClient client = server.connect();
  EXPECT_EQ(client.ask(kGet).status, 204);
  const RawReply second = client.ask(kGet);
  EXPECT_EQ(second.status, 204);
  EXPECT_FALSE(second.has("content-length"));
}

TEST(Server, LargeReplyArrivesWhole) {
  const std::string body(3'000'000, 'z');
  TestServer server(
      [&](const std::shared_ptr<Exchange>& exchange) { exchange->respond({.body = body}); });
  RawClient client = server.connect();
  EXPECT_EQ(client.ask(kGet).body, body);
  EXPECT_EQ(client.ask(kGet).body, body);
}

TEST(Server, ExchangeThatIsDroppedIsAnswered500) {
  TestServer server([](const std::shared_ptr<Exchange>&) {});
  RawClient client = server.connect();
  const RawReply reply = client.ask(kGet);
  EXPECT_EQ(reply.status, 500);
  EXPECT_EQ(reply.body, "the request was not answered");
  EXPECT_EQ(client.ask(kGet).status, 500) << "the connection stays";
}

TEST(Server, ExchangeMayOutliveTheServer) {
  Held held;
  Happening closed;
  Loop loop;
  std::shared_ptr<Exchange> exchange;
  {
    auto server = Server::listen(
        loop, {.port = 0}, held.handler(),
        [](int status, std::string_view, const Request&) { return Response{.status = status}; });
    ASSERT_TRUE(server);
    std::jthread thread([&] { loop.run(); });
    RawClient client = RawClient::tcp((*server)->port());
    client.send(kGet);
    exchange = held.take();
    ASSERT_TRUE(exchange);
    loop.post([&] {
      exchange->on_closed(closed.callback());
      server->reset();
    });
    EXPECT_TRUE(client.is_ended());
    EXPECT_TRUE(closed.wait());
    loop.stop();
  }
  EXPECT_TRUE(exchange->is_closed());
  exchange->respond(plain(200, "nobody reads it"));
}

TEST(Server, DrainClosesIdleConnectionsAndEndsBusyOnesBehindTheirReplies) {
  Held held;
  TestServer server(held.handler());
  RawClient idle = server.connect();
  RawClient busy = server.connect();
  busy.send(kGet);
  auto exchange = held.take();
  ASSERT_TRUE(exchange);
  EXPECT_TRUE(server.becomes_true([&] { return server.server().num_connections() == 2; }));
  server.on_loop([&] {
    EXPECT_EQ(server.server().num_busy(), 1U);
    server.server().drain();
  });
  EXPECT_TRUE(idle.is_ended());
  server.on_loop([&] {
    EXPECT_TRUE(Server::listen(server.loop(), {.port = server.port()}, echo, {}))
        << "the port is free";
  });
  server.on_loop([&] { echo(exchange); });
  server.let_go(exchange);
  const RawReply reply = busy.read_reply();
  EXPECT_EQ(reply.body, "GET /a ");
  EXPECT_TRUE(reply.has("\r\nconnection: close\r\n"));
  EXPECT_TRUE(busy.is_ended());
  busy.close();
  EXPECT_TRUE(server.becomes_true([&] { return server.server().num_connections() == 0; }));
  server.on_loop([&] { EXPECT_EQ(server.server().num_busy(), 0U); });
}

TEST(Server, PortCanBeBoundAgainDirectly) {
  ServerOptions options{.port = 0};
  for (int i = 0; i < 3; ++i) {
    TestServer server(echo, options);
    options.port = server.port();
    RawClient client = server.connect();
    EXPECT_EQ(client.ask(kGet).status, 200);
    // The server ends first, so that its end of the connection is the one that fades away.
  }
}

TEST(Server, PortInUseIsAnErrorInASentence) {
  TestServer first(echo);
  Loop loop;
  const auto second = Server::listen(loop, {.port = first.port()}, echo, {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Code::kIo);
  EXPECT_EQ(second.error().message(), "cannot listen on 127.0.0.1:" + std::to_string(first.port()) +
                                          ": Address already in use");
}

TEST(Server, NameListensOnItsAddresses) {
  TestServer server(echo, {.host = "localhost", .port = 0});
  RawClient client = server.connect();
  EXPECT_EQ(client.ask(kGet).status, 200);
}

TEST(Server, HostsThatAreNoneAreErrors) {
  Loop loop;
  for (const auto& host : {std::string(), std::string(300, 'a')}) {
    const auto server = Server::listen(loop, {.host = host, .port = 0}, echo, {});
    ASSERT_FALSE(server);
    EXPECT_EQ(server.error().code(), Code::kInvalidArgument);
  }
  const auto elsewhere = Server::listen(loop, {.host = "192.0.2.1", .port = 0}, echo, {});
  ASSERT_FALSE(elsewhere);
  EXPECT_EQ(elsewhere.error().code(), Code::kIo);
}

TEST(Server, ListensOnAUnixSocketAndRemovesItsFile) {
  const platform::TestFolder folder;
  const std::string path = folder.path() + "/s";
  {
    Held held;
    TestServer server(held.handler(), {.unix_path = path});
    EXPECT_EQ(server.server().address(), "unix:" + path);
    RawClient client = RawClient::local(path);
    client.send(kGet);
    auto exchange = held.take();
    ASSERT_TRUE(exchange);
    EXPECT_EQ(exchange->request().peer, "unix");
    server.on_loop([&] { echo(exchange); });
    server.let_go(exchange);
    EXPECT_EQ(client.read_reply().status, 200);
  }
  struct stat status {};
  EXPECT_NE(::lstat(path.c_str(), &status), 0);
}

TEST(Server, UnixSocketTakesTheFileOfADeadServerOnly) {
  const platform::TestFolder folder;
  const std::string path = folder.path() + "/s";
  {
    // What a killed server leaves: a bound socket that nobody listens on.
    const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(&address.sun_path[0], sizeof(address.sun_path) - 1);
    ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    ::close(fd);
  }
  TestServer server(echo, {.unix_path = path});
  EXPECT_EQ(RawClient::local(path).ask(kGet).status, 200);

  Loop loop;
  const auto second = Server::listen(loop, {.unix_path = path}, echo, {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Code::kIo);
  EXPECT_EQ(RawClient::local(path).ask(kGet).status, 200) << "the first one still answers";

  folder.write("file", "precious");
  const auto third = Server::listen(loop, {.unix_path = folder.path() + "/file"}, echo, {});
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code(), Code::kIo);
  EXPECT_EQ(folder.read("file"), "precious");

  const auto fourth = Server::listen(loop, {.unix_path = std::string(200, 'x')}, echo, {});
  ASSERT_FALSE(fourth);
  EXPECT_EQ(fourth.error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace cicada::http
