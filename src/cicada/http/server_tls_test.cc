#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <cstdio>

#include "cicada/http/server.h"
#include "cicada/http/server_for_test.h"
#include "cicada/platform/test_folder.h"

namespace cicada::http {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kGet = "GET /a HTTP/1.1\r\nHost: h\r\n\r\n";

// A key and a certificate that it signed itself, as files.
struct Identity {
  Identity() {
    EVP_PKEY* key = EVP_EC_gen("P-256");
    X509* certificate = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_NAME* name = X509_get_subject_name(certificate);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
    X509_set_issuer_name(certificate, name);
    EXPECT_GT(X509_sign(certificate, key, EVP_sha256()), 0);
    std::FILE* file = std::fopen(certificate_path().c_str(), "w");
    EXPECT_EQ(PEM_write_X509(file, certificate), 1);
    std::fclose(file);
    file = std::fopen(key_path().c_str(), "w");
    EXPECT_EQ(PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr), 1);
    std::fclose(file);
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
  std::string certificate_path() const { return folder.path() + "/certificate.pem"; }
  std::string key_path() const { return folder.path() + "/key.pem"; }
  ServerOptions options(ServerLimits limits = {}) const {
    return {.port = 0,
            .certificate_path = certificate_path(),
            .key_path = key_path(),
            .limits = limits};
  }

  platform::TestFolder folder;
};

class TlsClient {
 public:
  explicit TlsClient(std::uint16_t port, int max_version = TLS1_3_VERSION)
      : raw_(RawClient::tcp(port)), context_(SSL_CTX_new(TLS_client_method())) {
    // The test machine's policy must not be what refuses old versions here.
    SSL_CTX_set_security_level(context_, 0);
    SSL_CTX_set_max_proto_version(context_, max_version);
    ssl_ = SSL_new(context_);
    SSL_set_fd(ssl_, raw_.fd());
    is_open_ = SSL_connect(ssl_) == 1;
  }
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;
  ~TlsClient() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
  }

  bool is_open() const { return is_open_; }
  RawClient& raw() { return raw_; }
  void send(std::string_view text) {
    std::size_t taken = 0;
    EXPECT_EQ(SSL_write_ex(ssl_, text.data(), text.size(), &taken), 1);
  }
  // Reads until `text` has come; all there is when the server ends before.
  std::string read_until(std::string_view text) {
    while (kept_.find(text) == std::string::npos) {
      std::array<char, 20'000> piece{};
      const int size = SSL_read(ssl_, piece.data(), static_cast<int>(piece.size()));
      if (size <= 0) {
        ended_properly_ = SSL_get_error(ssl_, size) == SSL_ERROR_ZERO_RETURN;
        break;
      }
      kept_.append(piece.data(), static_cast<std::size_t>(size));
    }
    return std::exchange(kept_, {});
  }
  bool ended_properly() const { return ended_properly_; }
  void say_end() { SSL_shutdown(ssl_); }

 private:
  RawClient raw_;
  SSL_CTX* context_ = nullptr;
  SSL* ssl_ = nullptr;
  bool is_open_ = false;
  bool ended_properly_ = false;
  std::string kept_;
};

TEST(ServerTls, RequestsAndRepliesGoThroughTls) {
  const Identity identity;
  TestServer server(echo, identity.options());
  EXPECT_TRUE(server.server().address().starts_with("https://127.0.0.1:"));
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient client(server.port(), version);
    ASSERT_TRUE(client.is_open());
    client.send(kGet);
    EXPECT_TRUE(client.read_until("GET /a ").starts_with("HTTP/1.1 200 OK\r\n"));
    const std::string body(200'000, 'b');
    client.send(
        "POST /b HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 200000\r\n\r\n");
    client.send(body);
    EXPECT_TRUE(client.read_until("never").ends_with("POST /b " + body));
    EXPECT_TRUE(client.ended_properly());
  }
}

TEST(ServerTls, VersionsBelow12AreRefused) {
  const Identity identity;
  TestServer server(echo, identity.options());
  EXPECT_FALSE(TlsClient(server.port(), TLS1_1_VERSION).is_open());
}

TEST(ServerTls, LeavingIsSeenWhileTheHandlerWorks) {
  const Identity identity;
  Held held;
  TestServer server(held.handler(), identity.options());
  for (const char* way : {"end of TLS", "end of TCP", "reset", "during a stream"}) {
    SCOPED_TRACE(way);
    TlsClient client(server.port());
    client.send(kGet);
    auto exchange = held.take();
    ASSERT_TRUE(exchange);
    Happening closed;
    server.on_loop([&] { exchange->on_closed(closed.callback()); });
    if (way == std::string_view("end of TLS")) {
      client.say_end();
    } else if (way == std::string_view("end of TCP")) {
      client.raw().close();
    } else if (way == std::string_view("reset")) {
      client.raw().reset();
    } else {
      server.on_loop([&] {
        exchange->begin(200, {});
        exchange->write("one");
      });
      EXPECT_NE(client.read_until("one"), "");
      client.raw().close();
    }
    EXPECT_TRUE(closed.wait(milliseconds(100)));
    server.let_go(exchange);
  }
}

TEST(ServerTls, WhatIsNoTlsIsClosed) {
  const Identity identity;
  TestServer server(echo, identity.options({.header_time = milliseconds(30)}));
  RawClient client = server.connect();
  client.send(kGet);
  EXPECT_EQ(client.read_to_end().find("HTTP"), std::string::npos);
  // Neither does silence hold a connection for longer than a head may take.
  EXPECT_TRUE(server.connect().is_ended());
}

TEST(ServerTls, AbortedStreamIsVisiblyIncomplete) {
  const Identity identity;
  TestServer server(
      [](const std::shared_ptr<Exchange>& exchange) {
        exchange->begin(200, {});
        exchange->write("one");
        exchange->abort();
      },
      identity.options());
  TlsClient client(server.port());
  client.send(kGet);
  const std::string text = client.read_until("never");
  EXPECT_NE(text.find("3\r\none\r\n"), std::string::npos);
  EXPECT_EQ(text.find("0\r\n\r\n"), std::string::npos);
}

TEST(ServerTls, BadFilesAreErrorsThatNameThem) {
  const Identity identity;
  const Identity other;
  identity.folder.write("empty.pem", "");
  Loop loop;
  const auto error_of = [&](const std::string& certificate, const std::string& key) {
    const auto server = Server::listen(
        loop, {.port = 0, .certificate_path = certificate, .key_path = key}, echo, {});
    EXPECT_FALSE(server);
    if (server) return std::string();
    EXPECT_EQ(server.error().code(), Code::kInvalidArgument);
    return server.error().message();
  };
  const std::string empty = identity.folder.path() + "/empty.pem";
  EXPECT_NE(error_of(empty, identity.key_path()).find(empty), std::string::npos);
  EXPECT_NE(error_of(identity.certificate_path(), empty).find(empty), std::string::npos);
  EXPECT_NE(error_of(identity.certificate_path(), other.key_path()).find(other.key_path()),
            std::string::npos);
  EXPECT_NE(error_of("/nowhere.pem", identity.key_path()).find("/nowhere.pem"), std::string::npos);
  EXPECT_NE(error_of(identity.certificate_path(), "").find("only the certificate"),
            std::string::npos);
  EXPECT_NE(error_of("", identity.key_path()).find("only the key"), std::string::npos);
}

}  // namespace
}  // namespace cicada::http
