// Streams, slow readers, and clients that leave.
#include <gtest/gtest.h>

#include "cicada/http/server.h"
#include "cicada/http/server_for_test.h"
#include "cicada/platform/test_folder.h"

namespace cicada::http {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kGet = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";
constexpr std::string_view kGet10 = "GET /a HTTP/1.0\r\n\r\n";
// A client's leaving is to be seen within this.
constexpr milliseconds kNoticed{100};

// A client with a request that a handler holds.
struct Asked {
  explicit Asked(std::string_view request = kGet, ServerOptions options = {})
      : server(held.handler(), options),
        client(options.unix_path.empty() ? server.connect() : RawClient::local(options.unix_path)) {
    client.send(request);
    exchange = held.take();
  }
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;
  ~Asked() { server.let_go(exchange); }

  void watch() {
    server.on_loop([&] {
      exchange->on_closed(closed.callback());
      exchange->on_drained(drained.callback());
    });
  }
  void begin() {
    server.on_loop([&] { exchange->begin(200, {{"content-type", "text/event-stream"}}); });
  }
  void write(const std::string& piece) {
    server.on_loop([&] { exchange->write(piece); });
  }
  std::size_t buffered_bytes() {
    std::size_t bytes = 0;
    server.on_loop([&] { bytes = exchange->buffered_bytes(); });
    return bytes;
  }

  Happening closed;
  Happening drained;
  Held held;
  TestServer server;
  RawClient client;
  std::shared_ptr<Exchange> exchange;
};

TEST(ServerStream, PiecesArriveAsTheyAreWritten) {
  Asked asked;
  asked.begin();
  ASSERT_TRUE(asked.client.wait_for("\r\n\r\n")) << "the head does not wait for a piece";
  asked.write("one");
  ASSERT_TRUE(asked.client.wait_for("3\r\none\r\n"));
  asked.write("");
  asked.write("two");
  ASSERT_TRUE(asked.client.wait_for("3\r\ntwo\r\n"));
  asked.server.on_loop([&] { asked.exchange->end(); });
  const RawReply reply = asked.client.read_reply();
  EXPECT_TRUE(reply.is_whole);
  EXPECT_EQ(reply.body, "onetwo");
  EXPECT_TRUE(reply.has("\r\ncontent-type: text/event-stream\r\n"));
  asked.server.let_go(asked.exchange);
  asked.client.send(kGet);
  EXPECT_TRUE(asked.exchange = asked.held.take()) << "the connection stays";
}

TEST(ServerStream, PiecesOfOneTurnOfTheLoopGoOutTogether) {
  Asked asked;
  asked.begin();
  asked.client.wait_for("\r\n\r\n");
  asked.server.on_loop([&] {
    for (const char* piece : {"a", "b", "c"}) asked.exchange->write(piece);
    asked.exchange->end();
  });
  EXPECT_EQ(asked.client.read_reply().body, "abc");
}

TEST(ServerStream, Http10GetsPlainBytesEndedByTheConnection) {
  Asked asked(kGet10);
  asked.begin();
  asked.write("one");
  asked.write("two");
  asked.server.on_loop([&] { asked.exchange->end(); });
  const RawReply reply = asked.client.read_reply();
  EXPECT_FALSE(reply.has("transfer-encoding"));
  EXPECT_TRUE(reply.is_whole);
  EXPECT_EQ(reply.body, "onetwo");
}

TEST(ServerStream, HeadGetsTheHeadOnly) {
  Asked asked("HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n");
  asked.begin();
  asked.write("one");
  asked.server.on_loop([&] { asked.exchange->end(); });
  asked.server.let_go(asked.exchange);
  EXPECT_EQ(asked.client.read_reply(RawClient::To::kHead).status, 200);
  asked.client.send(kGet);
  EXPECT_TRUE(asked.exchange = asked.held.take());
  EXPECT_EQ(asked.client.kept(), "");
}

TEST(ServerStream, AbortedStreamIsVisiblyIncomplete) {
  Asked asked;
  asked.begin();
  asked.write("one");
  asked.server.on_loop([&] { asked.exchange->abort(); });
  const RawReply reply = asked.client.read_reply();
  EXPECT_EQ(reply.body, "one");
  EXPECT_FALSE(reply.is_whole);
  EXPECT_FALSE(asked.client.was_reset()) << "what was written can be read";
}

TEST(ServerStream, AbortedHttp10StreamEndsWithAReset) {
  Asked asked(kGet10);
  asked.begin();
  asked.write("one");
  asked.client.wait_for("one");
  asked.server.on_loop([&] { asked.exchange->abort(); });
  EXPECT_FALSE(asked.client.read_reply().is_whole);
  EXPECT_TRUE(asked.client.was_reset());
}

TEST(ServerStream, StreamThatIsDroppedIsAborted) {
  Asked asked;
  asked.begin();
  asked.write("one");
  asked.server.let_go(asked.exchange);
  EXPECT_FALSE(asked.client.read_reply().is_whole);
}

TEST(ServerStream, LeavingIsSeenWhileTheHandlerWorks) {
  for (const bool by_reset : {false, true}) {
    Asked asked;
    asked.watch();
    by_reset ? asked.client.reset() : asked.client.close();
    EXPECT_TRUE(asked.closed.wait(kNoticed));
    asked.server.on_loop([&] {
      EXPECT_TRUE(asked.exchange->is_closed());
      EXPECT_EQ(asked.server.server().num_connections(), 0U);
      asked.exchange->respond(plain(200, "nobody reads it"));
    });
    EXPECT_EQ(asked.closed.count(), 1);
  }
}

TEST(ServerStream, LeavingIsSeenDuringAStream) {
  for (const bool by_reset : {false, true}) {
    Asked asked;
    asked.watch();
    asked.begin();
    asked.write("one");
    asked.client.wait_for("one");
    by_reset ? asked.client.reset() : asked.client.close();
    EXPECT_TRUE(asked.closed.wait(kNoticed));
    asked.write("two");
    EXPECT_EQ(asked.buffered_bytes(), 0U);
    asked.server.on_loop([&] { asked.exchange->end(); });
  }
}

TEST(ServerStream, LeavingIsToldToOneWhoAsksLater) {
  Asked asked;
  asked.client.close();
  EXPECT_TRUE(asked.server.becomes_true([&] { return asked.exchange->is_closed(); }));
  asked.watch();
  EXPECT_TRUE(asked.closed.wait());
}

TEST(ServerStream, LeavingIsSeenBehindMuchThatWasSentAhead) {
  Asked asked;
  asked.watch();
  // More than is read ahead, so that the end of the connection stands behind unread bytes.
  std::string ahead;
  while (ahead.size() < 150'000) ahead += kGet;
  ASSERT_TRUE(asked.client.send(ahead));
  asked.client.close();
  EXPECT_TRUE(asked.closed.wait(2 * kNoticed));
}

TEST(ServerStream, MuchThatWasSentAheadIsServed) {
  TestServer server(echo);
  RawClient client = server.connect();
  std::string ahead;
  for (int i = 0; i < 3'000; ++i) ahead += kGet;
  std::jthread sending([&] { client.send(ahead); });
  for (int i = 0; i < 3'000; ++i) ASSERT_EQ(client.read_reply().status, 200) << i;
}

TEST(ServerStream, CallbacksThatHoldTheExchangeLetItGo) {
  Held held;
  TestServer server(held.handler());
  for (const bool is_answered : {false, true}) {
    RawClient client = server.connect();
    client.send(kGet);
    auto exchange = held.take();
    ASSERT_TRUE(exchange);
    const std::weak_ptr<Exchange> watched = exchange;
    server.on_loop([&] {
      exchange->on_closed([exchange] {});
      exchange->on_drained([exchange] {});
      if (is_answered) echo(exchange);
    });
    server.let_go(exchange);
    if (!is_answered) client.close();
    EXPECT_TRUE(server.becomes_true([&] { return watched.expired(); })) << is_answered;
  }
}

TEST(ServerStream, SlowReaderIsBufferedUntilItReads) {
  const platform::TestFolder folder;
  Asked asked(kGet, {.unix_path = folder.path() + "/s"});
  asked.watch();
  asked.begin();
  EXPECT_TRUE(asked.drained.wait()) << "a head that was taken";
  const std::string piece(1'000'000, 'p');
  asked.write(piece);
  std::this_thread::sleep_for(milliseconds(10));
  const std::size_t buffered_bytes = asked.buffered_bytes();
  EXPECT_GT(buffered_bytes, 100'000U);
  asked.write(piece);
  EXPECT_GE(asked.buffered_bytes(), buffered_bytes + piece.size());
  const int num_drained = asked.drained.count();
  asked.server.on_loop([&] { asked.exchange->end(); });
  const RawReply reply = asked.client.read_reply();
  EXPECT_TRUE(reply.is_whole);
  EXPECT_EQ(reply.body.size(), 2 * piece.size());
  EXPECT_TRUE(asked.server.becomes_true([&] { return asked.exchange->buffered_bytes() == 0; }));
  EXPECT_EQ(asked.drained.count(), num_drained + 1);
  EXPECT_EQ(asked.closed.count(), 0);
}

TEST(ServerStream, MakerMayWriteTheNextPieceWhenDrained) {
  TestServer server([](const std::shared_ptr<Exchange>& exchange) {
    exchange->begin(200, {});
    auto left = std::make_shared<int>(50);
    exchange->on_drained([exchange, left] {
      if ((*left)-- == 0) return exchange->end();
      exchange->write(std::string(10'000, 'm'));
    });
  });
  RawClient client = server.connect();
  const RawReply reply = client.ask(kGet);
  EXPECT_TRUE(reply.is_whole);
  EXPECT_EQ(reply.body.size(), 500'000U);
}

TEST(ServerStream, ReaderThatTakesNothingIsGivenUp) {
  const platform::TestFolder folder;
  Asked asked(kGet,
              {.unix_path = folder.path() + "/s", .limits = {.write_time = milliseconds(50)}});
  asked.watch();
  asked.begin();
  asked.write(std::string(1'000'000, 'p'));
  EXPECT_TRUE(asked.closed.wait());
  asked.server.on_loop([&] { EXPECT_EQ(asked.server.server().num_connections(), 0U); });
}

TEST(ServerStream, SlowReaderThatTakesSomethingIsNotGivenUp) {
  const platform::TestFolder folder;
  Asked asked(kGet,
              {.unix_path = folder.path() + "/s", .limits = {.write_time = milliseconds(100)}});
  asked.watch();
  asked.begin();
  asked.server.on_loop([&] {
    asked.exchange->write(std::string(1'000'000, 'p'));
    asked.exchange->end();
  });
  // Longer in all than the limit, but never without a byte taken for so long.
  std::array<char, 100'000> piece{};
  for (int i = 0; i < 8; ++i) {
    std::this_thread::sleep_for(milliseconds(15));
    const auto size = ::recv(asked.client.fd(), piece.data(), piece.size(), 0);
    ASSERT_GT(size, 0);
    asked.client.kept().append(piece.data(), static_cast<std::size_t>(size));
  }
  EXPECT_TRUE(asked.client.read_reply().is_whole);
}

TEST(ServerStream, StreamThatBeganBeforeADrainEndsTheConnection) {
  Asked asked;
  asked.begin();
  asked.server.on_loop([&] { asked.server.server().drain(); });
  asked.write("one");
  asked.server.on_loop([&] { asked.exchange->end(); });
  const RawReply reply = asked.client.read_reply();
  EXPECT_TRUE(reply.is_whole);
  EXPECT_EQ(reply.body, "one");
  EXPECT_TRUE(asked.client.is_ended());
}

}  // namespace
}  // namespace cicada::http
