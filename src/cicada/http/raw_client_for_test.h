// For tests: a client that sends exactly the bytes it is told to and shows exactly what comes back.
// Every wait ends after some seconds.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace cicada::http {

struct RawReply {
  int status = 0;    // 0: none came
  std::string head;  // lower case, with the empty line
  std::string body;  // without chunks
  bool is_whole = false;

  bool has(std::string_view text) const { return head.find(text) != std::string::npos; }
};

class RawClient {
 public:
  static RawClient tcp(std::uint16_t port, int receive_buffer_bytes = 0) {
    RawClient client(::socket(AF_INET, SOCK_STREAM, 0));
    if (receive_buffer_bytes > 0) {
      ::setsockopt(client.fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes,
                   sizeof(receive_buffer_bytes));
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    client.connect(&address, sizeof(address));
    return client;
  }

  static RawClient local(const std::string& path) {
    RawClient client(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(&address.sun_path[0], sizeof(address.sun_path) - 1);
    client.connect(&address, sizeof(address));
    return client;
  }

  RawClient(RawClient&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), kept_(std::move(other.kept_)) {}
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  RawClient& operator=(RawClient&&) = delete;
  ~RawClient() { close(); }

  int fd() const { return fd_; }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  // Leaves with a reset instead of an end.
  void reset() {
    const linger now{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close();
  }

  // False once the other side does not take it.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto size = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (size <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(size));
    }
    return true;
  }

  // Waits until `text` has come; false when the other side ends before.
  bool wait_for(std::string_view text) {
    while (kept_.find(text) == std::string::npos) {
      if (!receive()) return false;
    }
    return true;
  }
  // Everything until the other side ends.
  std::string read_to_end() {
    while (receive()) {
    }
    return std::exchange(kept_, {});
  }
  // The other side has ended without a word.
  bool is_ended() { return read_to_end().empty() && !timed_out_; }
  bool was_reset() const { return was_reset_; }
  std::string& kept() { return kept_; }

  enum class To : bool { kGet, kHead };
  RawReply read_reply(To to = To::kGet) {
    RawReply reply;
    if (!wait_for("\r\n\r\n")) return reply;
    reply.head = take(kept_.find("\r\n\r\n") + 4);
    std::ranges::transform(reply.head, reply.head.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    reply.status = std::atoi(reply.head.substr(9, 3).c_str());
    if (to == To::kHead || reply.status == 204 || reply.status == 304 || reply.status == 100) {
      reply.is_whole = true;
    } else if (const auto at = reply.head.find("\r\ncontent-length: "); at != std::string::npos) {
      const auto size = static_cast<std::size_t>(std::atoll(reply.head.c_str() + at + 18));
      reply.is_whole = wait_for_bytes(size);
      reply.body = take(size);
    } else if (reply.has("\r\ntransfer-encoding: chunked\r\n")) {
      reply.is_whole = read_chunks(reply.body);
    } else {
      reply.body = read_to_end();
      reply.is_whole = !was_reset_ && !timed_out_;
    }
    return reply;
  }
  RawReply ask(std::string_view request) {
    send(request);
    return read_reply();
  }

 private:
  explicit RawClient(int fd) : fd_(fd) {
    const timeval limit{.tv_sec = 5, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  }

  void connect(const void* address, socklen_t size) {
    EXPECT_EQ(::connect(fd_, static_cast<const sockaddr*>(address), size), 0)
        << std::strerror(errno);
  }

  bool receive() {
    std::array<char, 64 << 10> piece{};
    const auto size = ::recv(fd_, piece.data(), piece.size(), 0);
    if (size < 0) (errno == ECONNRESET ? was_reset_ : timed_out_) = true;
    if (size <= 0) return false;
    kept_.append(piece.data(), static_cast<std::size_t>(size));
    return true;
  }

  bool wait_for_bytes(std::size_t size) {
    while (kept_.size() < size) {
      if (!receive()) return false;
    }
    return true;
  }

  std::string take(std::size_t size) {
    std::string taken = kept_.substr(0, size);
    kept_.erase(0, size);
    return taken;
  }

  bool read_chunks(std::string& body) {
    while (wait_for("\r\n")) {
      const std::size_t line_bytes = kept_.find("\r\n") + 2;
      const auto size = static_cast<std::size_t>(std::strtoull(kept_.c_str(), nullptr, 16));
      if (!wait_for_bytes(line_bytes + size + 2)) return false;
      take(line_bytes);
      body += take(size);
      if (take(2) != "\r\n") return false;
      if (size == 0) return true;
    }
    return false;
  }

  int fd_ = -1;
  std::string kept_;  // came and was not read yet
  bool was_reset_ = false;
  bool timed_out_ = false;
};

}  // namespace cicada::http
