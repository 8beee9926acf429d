#include "cicada/http/request_reader.h"

#include <gtest/gtest.h>

namespace cicada::http {
namespace {

using State = RequestReader::State;

RequestReader small_reader() { return {1 << 10, 64, "peer"}; }

// Reads it in pieces of that size, as a connection would hand them on.
RequestReader read_in_pieces(std::string_view bytes, std::size_t piece_bytes) {
  RequestReader reader = small_reader();
  std::string kept;
  while (!bytes.empty() && reader.state() == State::kNeedsMore) {
    kept += bytes.substr(0, piece_bytes);
    bytes.remove_prefix(std::min(piece_bytes, bytes.size()));
    kept.erase(0, reader.read(kept));
  }
  return reader;
}

TEST(RequestReader, HowTheBytesAreCutDoesNotMatter) {
  constexpr std::string_view kRequest =
      "\r\nPOST /a%20b?c=d HTTP/1.1\r\nHost: h\r\nX-One: 1 \r\nx-one:2\r\n"
      "Transfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n1\r\n \r\n0\r\nX-Late: 1\r\n\r\n";
  for (std::size_t piece_bytes = 1; piece_bytes <= kRequest.size(); ++piece_bytes) {
    RequestReader reader = read_in_pieces(kRequest, piece_bytes);
    ASSERT_EQ(reader.state(), State::kComplete) << piece_bytes << ": " << reader.sentence();
    EXPECT_TRUE(reader.keep_alive());
    const Request request = reader.take_request();
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.path, "/a b");
    EXPECT_EQ(request.query_value("c"), "d");
    EXPECT_EQ(request.header("x-ONE"), "1");
    EXPECT_EQ(request.headers.size(), 4U);
    EXPECT_EQ(request.header("x-late"), "") << "a trailer is no header";
    EXPECT_EQ(request.body, "hello ");
    EXPECT_EQ(request.peer, "peer");
  }
}

TEST(RequestReader, LastChunkMayComeByteByByte) {
  // Beast's parser asserts on this when it is fed directly.
  RequestReader reader = small_reader();
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  ASSERT_EQ(reader.read(head), head.size());
  for (const char* rest : {"0", "0\r", "0\r\n", "0\r\n\r"}) {
    EXPECT_EQ(reader.read(rest), 0U);
    EXPECT_EQ(reader.state(), State::kNeedsMore);
  }
  EXPECT_EQ(reader.read("0\r\n\r\n"), 5U);
  EXPECT_EQ(reader.state(), State::kComplete);
}

TEST(RequestReader, WhatFollowsARequestIsLeft) {
  RequestReader reader = small_reader();
  const std::string first = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab";
  EXPECT_EQ(reader.read(first + "GET /"), first.size());
  EXPECT_EQ(reader.state(), State::kComplete);
  EXPECT_EQ(reader.read("GET /"), 0U);
}

TEST(RequestReader, RefusesWithTheStatusOfTheFault) {
  struct Case {
    const char* text;
    int status;
  };
  const std::string host = "Host: h\r\n";
  for (const auto& [text, status] : std::initializer_list<Case>{
           {"GET\r\n\r\n", 400},
           {"G@T / HTTP/1.1\r\n", 400},
           {"GET / HTTP/1.1\n\n", 400},
           {"GET / HTTP/2.0\r\n\r\n", 400},
           {"GET  / HTTP/1.1\r\n\r\n", 400},
           {"GET relative HTTP/1.1\r\n\r\n", 400},
           {"GET /%00 HTTP/1.1\r\n\r\n", 400},
           {"GET /%4 HTTP/1.1\r\n\r\n", 400},
           {"GET /\x01 HTTP/1.1\r\n\r\n", 400},
           {"GET / HTTP/1.1\r\n\r\n", 400},  // no host
           {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
           {"GET / HTTP/1.1\r\nHost: h\r\nA B: c\r\n\r\n", 400},
           {"GET / HTTP/1.1\r\nHost: h\r\nA : c\r\n\r\n", 400},
           {"GET / HTTP/1.1\r\nHost: h\r\nA: b\x01\r\n\r\n", 400},
           {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n", 400},
           {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", 400},
           {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n", 400},
           {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
           {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            400},
           {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
            400},
           {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\nContent-Length: 1\r\n\r\n",
            400},
           {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
           {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n", 501},
           {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501},
           {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n"
            "Transfer-Encoding: chunked\r\n\r\n",
            501},
           {"CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n", 501},
           {"POST / HTTP/1.1\r\nHost: h\r\nExpect: cake\r\nContent-Length: 1\r\n\r\n", 417},
           {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n", 400},
           {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabcdefg\r\n",
            400},
           {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
            "fffffffffffffffff\r\n\r\n",
            400},
       }) {
    const RequestReader reader = read_in_pieces(text, 4096);
    ASSERT_EQ(reader.state(), State::kRefused) << text;
    EXPECT_EQ(reader.status(), status) << text << reader.sentence();
    EXPECT_FALSE(reader.sentence().empty());
  }
}

std::string head_of(std::size_t size) {
  std::string head = "GET / HTTP/1.1\r\nHost: h\r\nX: ";
  return head + std::string(size - head.size() - 4, 'x') + "\r\n\r\n";
}

TEST(RequestReader, HeaderLimitIsExact) {
  for (const std::size_t piece_bytes : {std::size_t{1}, std::size_t{100}, std::size_t{9000}}) {
    EXPECT_EQ(read_in_pieces(head_of(1024), piece_bytes).state(), State::kComplete);
    EXPECT_EQ(read_in_pieces(head_of(1025), piece_bytes).status(), 431);
    // Without an end, in the URL or in a header.
    EXPECT_EQ(read_in_pieces("GET /" + std::string(2000, 'x'), piece_bytes).status(), 431);
    EXPECT_EQ(
        read_in_pieces("GET / HTTP/1.1\r\nA: " + std::string(2000, 'x'), piece_bytes).status(),
        431);
  }
}

TEST(RequestReader, BodyLimitIsExactAndSaidBeforeTheBody) {
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\n";
  const std::string chunked = head + "Transfer-Encoding: chunked\r\n\r\n";
  for (const std::size_t piece_bytes : {std::size_t{1}, std::size_t{9000}}) {
    EXPECT_EQ(
        read_in_pieces(head + "Content-Length: 64\r\n\r\n" + std::string(64, 'b'), piece_bytes)
            .state(),
        State::kComplete);
    EXPECT_EQ(read_in_pieces(head + "Content-Length: 65\r\n\r\n", piece_bytes).status(), 413);
    const std::string full = chunked + "40\r\n" + std::string(64, 'b') + "\r\n";
    EXPECT_EQ(read_in_pieces(full + "0\r\n\r\n", piece_bytes).state(), State::kComplete);
    EXPECT_EQ(read_in_pieces(full + "1\r\nx\r\n", piece_bytes).status(), 413);
    EXPECT_EQ(read_in_pieces(chunked + "41\r\nx\r\n", piece_bytes).status(), 413);
  }
}

TEST(RequestReader, LinesOfChunksAndTrailersAreBounded) {
  const std::string chunked = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(read_in_pieces(chunked + "1;" + std::string(2000, 'x'), 100).status(), 431);
  EXPECT_EQ(read_in_pieces(chunked + "0\r\nA: " + std::string(2000, 'x'), 100).status(), 431);
}

TEST(RequestReader, KeepsAliveAsTheVersionSays) {
  EXPECT_TRUE(read_in_pieces("GET / HTTP/1.1\r\nHost: h\r\n\r\n", 99).keep_alive());
  EXPECT_FALSE(
      read_in_pieces("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", 99).keep_alive());
  EXPECT_FALSE(read_in_pieces("GET / HTTP/1.0\r\n\r\n", 99).keep_alive());
  EXPECT_TRUE(read_in_pieces("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 99).keep_alive());
}

TEST(RequestReader, EmptyLinesDoNotBeginARequest) {
  RequestReader reader = small_reader();
  EXPECT_EQ(reader.read("\r\n\r\n\r"), 4U);
  EXPECT_FALSE(reader.has_begun());
  EXPECT_EQ(reader.read("\r\nG"), 2U);
  EXPECT_TRUE(reader.has_begun());
}

}  // namespace
}  // namespace cicada::http
