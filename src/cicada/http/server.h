// HTTP/1.1 over TCP, TLS or a Unix socket: listens, reads whole requests within limits, writes
// replies. Knows no model and no API: what the server itself refuses (malformed, too large, too
// slow, too many) gets its body from `refuse`.
// Threads: the loop's.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "cicada/base/result.h"
#include "cicada/http/exchange.h"
#include "cicada/http/loop.h"

namespace cicada::http {

struct ServerLimits {
  std::size_t max_header_bytes = std::size_t{64} << 10;  // request line included: else 431
  std::size_t max_body_bytes = std::size_t{32} << 20;    // else 413, said without reading it all
  std::size_t max_connections = 1024;                    // more are told 503 and closed
  std::chrono::milliseconds header_time{10'000};         // from its first byte: else 408
  std::chrono::milliseconds body_time{60'000};           // else 408
  std::chrono::milliseconds idle_time{75'000};           // between requests of a connection
  std::chrono::milliseconds write_time{60'000};  // without a byte taken, a slow reader is given up
};

struct ServerOptions {
  std::string host = "127.0.0.1";  // name or address
  std::uint16_t port = 8080;       // 0: any free one
  std::string unix_path;           // listens there instead, when not empty
  std::string certificate_path;    // PEM; with the key: TLS only
  std::string key_path;
  ServerLimits limits;
};

class Server {
 public:
  // Listens at once. Errors: kInvalidArgument for a name that does not resolve or a bad
  // certificate; kIo with address and reason when it cannot be bound. `refuse` makes the body and
  // headers of a reply of the server's own: status, sentence, and what is known of the request
  // (path and headers may be missing).
  using Refuse =
      std::function<Response(int status, std::string_view sentence, const Request& request)>;
  static Result<std::unique_ptr<Server>> listen(Loop& loop, const ServerOptions& options,
                                                Handler handler, Refuse refuse);

  // Closes every connection; exchanges that are running learn of it as if their clients had gone.
  // The loop must outlive the server.
  virtual ~Server() = default;

  // "http://127.0.0.1:8080", "https://…" or "unix:/path".
  virtual std::string address() const = 0;
  virtual std::uint16_t port() const = 0;

  // Stops listening and closes idle connections; running exchanges go on, their connections close
  // behind the reply.
  virtual void drain() = 0;
  // Connections that have an exchange running.
  virtual std::size_t num_busy() const = 0;
  virtual std::size_t num_connections() const = 0;
};

}  // namespace cicada::http
