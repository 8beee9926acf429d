#include "cicada/platform/local_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "cicada/platform/system_words.h"

namespace cicada::platform {
namespace {

bool would_wait(int number) { return number == EAGAIN || number == EWOULDBLOCK; }

// Whoever handed a socket over may have made it one that never waits.
void wait_for(const Fd& socket, short events) {
  struct pollfd entry {};
  entry.fd = socket.get();
  entry.events = events;
  ::poll(&entry, 1, -1);
}

ssize_t write_once(const Fd& socket, std::span<const std::byte> bytes, int flags) {
  ssize_t put = 0;
  do {
    put = ::send(socket.get(), bytes.data(), bytes.size(), flags | MSG_NOSIGNAL);
  } while (put < 0 && errno == EINTR);
  return put;
}

int socket_option(int fd, int option) {
  int value = -1;
  socklen_t size = sizeof value;
  return ::getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

}  // namespace

Result<SocketPair> make_socket_pair() {
  std::array<int, 2> fds{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) != 0) {
    return fail(Code::kIo, "a pair of sockets cannot be made: {}", system_words(errno));
  }
  return SocketPair{Fd(fds[0]), Fd(fds[1])};
}

Result<Fd> adopt_local_socket(int fd) {
  struct sockaddr_storage peer {};
  socklen_t size = sizeof peer;
  // The name of the peer is wanted by nobody, but only a connected socket has one.
  if (socket_option(fd, SO_TYPE) != SOCK_STREAM || socket_option(fd, SO_DOMAIN) != AF_UNIX ||
      ::getpeername(fd, static_cast<struct sockaddr*>(static_cast<void*>(&peer)), &size) != 0 ||
      ::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
    return fail(Code::kInvalidArgument, "descriptor {}: is no connected local stream socket", fd);
  }
  return Fd(fd);
}

Result<std::size_t> read_some(const Fd& socket, std::span<std::byte> bytes) {
  while (true) {
    const ssize_t got = ::recv(socket.get(), bytes.data(), bytes.size(), 0);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (would_wait(errno)) {
      wait_for(socket, POLLIN);
    } else if (errno != EINTR) {
      return fail(Code::kIo, "reading from the other process failed: {}", system_words(errno));
    }
  }
}

Result<void> write_all(const Fd& socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = write_once(socket, bytes, 0);
    if (put >= 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(put));
    } else if (would_wait(errno)) {
      wait_for(socket, POLLOUT);
    } else {
      return fail(Code::kIo, "writing to the other process failed: {}", system_words(errno));
    }
  }
  return {};
}

Result<std::size_t> write_now(const Fd& socket, std::span<const std::byte> bytes) {
  const ssize_t put = write_once(socket, bytes, MSG_DONTWAIT);
  if (put >= 0) return static_cast<std::size_t>(put);
  if (would_wait(errno)) return std::size_t{0};
  return fail(Code::kIo, "writing to the other process failed: {}", system_words(errno));
}

void shut_down(const Fd& socket) { ::shutdown(socket.get(), SHUT_RDWR); }

}  // namespace cicada::platform
