#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cstring>
#include <utility>

#include "cicada/http/listener_impl.h"

namespace cicada::http {
namespace {

namespace asio = boost::asio;
using SystemError = boost::system::error_code;
using LocalProtocol = asio::local::stream_protocol;

// Copied, as the bytes of a sockaddr may not be looked at through another type.
template <typename Address>
Address address_as(const StreamProtocol::endpoint& endpoint) {
  Address address{};
  std::memcpy(&address, endpoint.data(), std::min(sizeof(address), endpoint.size()));
  return address;
}

std::uint16_t port_of(const StreamProtocol::endpoint& endpoint) {
  const auto family = endpoint.protocol().family();
  if (family == AF_INET) return ntohs(address_as<sockaddr_in>(endpoint).sin_port);
  if (family == AF_INET6) return ntohs(address_as<sockaddr_in6>(endpoint).sin6_port);
  return 0;
}

// Opens, binds and listens.
SystemError start(Listener& listener, const StreamProtocol& protocol,
                  const StreamProtocol::endpoint& endpoint) {
  SystemError error;
  listener.acceptor.open(protocol, error);
  if (error) return error;
  if (listener.unix_path.empty()) {
    // The port can be bound again while connections of the last server fade away.
    listener.acceptor.set_option(asio::socket_base::reuse_address(true), error);
    if (error) return error;
  }
  listener.acceptor.bind(endpoint, error);
  if (error) return error;
  listener.acceptor.listen(asio::socket_base::max_listen_connections, error);
  return error;
}

// True for an address of a family that this machine does not have.
bool is_absent(const SystemError& error) {
  return error == asio::error::address_family_not_supported ||
         error == boost::system::errc::address_not_available;
}

Result<void> check_replaceable(asio::io_context& context, const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return {};  // bind says what is wrong, if anything
  if (!S_ISSOCK(status.st_mode)) {
    return fail(Code::kIo, "cannot listen on unix:{}: there is a file that is no socket", path);
  }
  SystemError error;
  LocalProtocol::socket probe(context);
  probe.connect(LocalProtocol::endpoint(path), error);
  if (error != asio::error::connection_refused) {
    return fail(Code::kIo, "cannot listen on unix:{}: {}", path,
                error ? error.message() : "another server answers there");
  }
  ::unlink(path.c_str());
  return {};
}

}  // namespace

void Listener::close() {
  pause.cancel();
  if (!acceptor.is_open()) return;
  SystemError ignored;
  acceptor.close(ignored);
  struct stat status {};
  if (!unix_path.empty() && ::lstat(unix_path.c_str(), &status) == 0 && status.st_dev == device &&
      status.st_ino == inode) {
    ::unlink(unix_path.c_str());
  }
}

Result<Listeners> listen_tcp(asio::io_context& context, const std::string& host,
                             std::uint16_t port) {
  // An empty name would mean every address of the machine.
  if (host.empty()) return fail(Code::kInvalidArgument, "cannot listen: the host's name is empty");
  SystemError error;
  asio::ip::tcp::resolver resolver(context);
  const auto found =
      resolver.resolve(host, std::to_string(port), asio::ip::tcp::resolver::passive, error);
  if (error || found.empty()) {
    return fail(Code::kInvalidArgument, "cannot listen on {}: {}", host,
                error ? error.message() : "it has no address");
  }
  Listeners listeners;
  SystemError absent;
  for (const auto& entry : found) {
    asio::ip::tcp::endpoint endpoint = entry.endpoint();
    // Port 0: the port that the first address got is everyone's.
    if (!listeners.empty()) endpoint.port(listeners.front()->port);
    auto listener = std::make_shared<Listener>(context);
    const bool is_v6 = endpoint.address().is_v6();
    listener->host =
        is_v6 ? "[" + endpoint.address().to_string() + "]" : endpoint.address().to_string();
    const bool is_known = std::ranges::any_of(
        listeners, [&](const auto& other) { return other->host == listener->host; });
    if (is_known) continue;
    error = start(*listener, endpoint.protocol(), endpoint);
    if (is_absent(error)) {
      absent = error;
      continue;
    }
    if (error) {
      return fail(Code::kIo, "cannot listen on {}:{}: {}", listener->host, endpoint.port(),
                  error.message());
    }
    listener->port = port_of(listener->acceptor.local_endpoint(error));
    listeners.push_back(std::move(listener));
  }
  if (listeners.empty()) {
    return fail(Code::kIo, "cannot listen on {}:{}: {}", host, port, absent.message());
  }
  return listeners;
}

Result<Listeners> listen_unix(asio::io_context& context, const std::string& path) {
  constexpr std::size_t kMaxPathBytes = sizeof(sockaddr_un::sun_path) - 1;
  if (path.size() > kMaxPathBytes) {
    return fail(Code::kInvalidArgument,
                "cannot listen on unix:{}: the path has {} bytes, at most {}", path, path.size(),
                kMaxPathBytes);
  }
  CICADA_TRY(check_replaceable(context, path));
  auto listener = std::make_shared<Listener>(context);
  listener->unix_path = path;
  const SystemError error = start(*listener, LocalProtocol(), LocalProtocol::endpoint(path));
  struct stat status {};
  if (!error && ::lstat(path.c_str(), &status) == 0) {
    listener->device = status.st_dev;
    listener->inode = status.st_ino;
  }
  if (error) return fail(Code::kIo, "cannot listen on unix:{}: {}", path, error.message());
  Listeners listeners;
  listeners.push_back(std::move(listener));
  return listeners;
}

std::string address_text(const StreamProtocol::endpoint& endpoint) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const auto family = endpoint.protocol().family();
  if (family == AF_INET) {
    const auto address = address_as<sockaddr_in>(endpoint);
    ::inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
    return text.data();
  }
  if (family == AF_INET6) {
    const auto address = address_as<sockaddr_in6>(endpoint);
    ::inet_ntop(AF_INET6, &address.sin6_addr, text.data(), text.size());
    return text.data();
  }
  return "unix";
}

}  // namespace cicada::http
