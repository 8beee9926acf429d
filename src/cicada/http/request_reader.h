// Turns the bytes of a connection into one request, within limits. Does no I/O.
//
// Hides Beast, whose parser does the reading of the grammar. Beyond it: exact limits, one kind of
// framing only, transfer codings that we know, expectations, the host, the target.
// Threads: a value of one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "cicada/http/exchange.h"

namespace cicada::http {

class RequestReader {
 public:
  enum class State : std::uint8_t {
    kNeedsMore,
    kComplete,
    kRefused,  // status() and sentence() say why; nothing more can be read from the connection
  };

  // Limits are inclusive: the request line with all headers and the empty line; the body.
  RequestReader(std::size_t max_header_bytes, std::size_t max_body_bytes, std::string peer);
  RequestReader(RequestReader&&) noexcept;
  RequestReader& operator=(RequestReader&&) noexcept;
  ~RequestReader();

  // Takes what it can from the front of `bytes` and returns how much. What it leaves has to come
  // again in front of what follows; while it needs more, that is never more than a head may have.
  // Does nothing once it is complete or has refused.
  std::size_t read(std::string_view bytes);
  State state() const;

  // A request has begun: empty lines before it do not count.
  bool has_begun() const;
  bool has_head() const;
  // The client waits for "100 Continue" before it sends the body. After the head only.
  bool expects_continue() const;
  // After the head only.
  bool keep_alive() const;
  // False for HTTP/1.0, also before the head.
  bool is_http11() const;

  // What is known so far. The body comes last.
  const Request& request() const;
  Request take_request();

  // When it has refused: 400, 413, 417, 431 or 501, and why.
  int status() const;
  const std::string& sentence() const;

 private:
  class Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace cicada::http
