// Sockets that listen: TCP, for each address of a name, and Unix.
// Threads: the loop's.
#pragma once

#include <sys/types.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cicada/base/result.h"

namespace cicada::http {

// One type for all families, so that a connection needs to exist only once.
using StreamProtocol = boost::asio::generic::stream_protocol;

struct Listener {
  explicit Listener(boost::asio::io_context& context) : acceptor(context), pause(context) {}
  ~Listener() { close(); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Stops listening; a Unix socket's file goes, if it is still ours.
  void close();

  boost::asio::basic_socket_acceptor<StreamProtocol> acceptor;
  boost::asio::steady_timer pause;  // between failed attempts to accept
  std::string host;                 // numeric, with brackets where a URL needs them
  std::uint16_t port = 0;
  std::string unix_path;  // empty for TCP
  dev_t device = 0;       // of the socket's file
  ino_t inode = 0;
};

// Shared with the accept that is waiting.
using Listeners = std::vector<std::shared_ptr<Listener>>;

// At least one; all on the same port. Errors: kInvalidArgument when the name does not resolve, kIo
// when no address, or not each one that this machine has, can be bound.
Result<Listeners> listen_tcp(boost::asio::io_context& context, const std::string& host,
                             std::uint16_t port);
// Takes the place of a socket's file that nobody answers on. Errors: kInvalidArgument for a path
// that is too long; kIo when somebody answers, when it is another kind of file, or the system
// refuses.
Result<Listeners> listen_unix(boost::asio::io_context& context, const std::string& path);

// "127.0.0.1", "::1" or "unix", of the client's end.
std::string address_text(const StreamProtocol::endpoint& endpoint);

}  // namespace cicada::http
