// The head of a reply as text. What frames the message is decided by the server alone.
// Threads: pure functions.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cicada/http/exchange.h"

namespace cicada::http {

struct Framing {
  // At most one of the two; neither: no body, or one that ends with the connection.
  std::optional<std::uint64_t> content_length;
  bool is_chunked = false;
  enum class Connection : std::uint8_t { kUnsaid, kClose, kKeepAlive };
  Connection connection = Connection::kUnsaid;
};

// Status line, date, framing, then `headers`, and the empty line. Left out of `headers`: those of
// the server (content-length, transfer-encoding, connection, keep-alive, date), names that are no
// words, and values with control characters, which could split the reply.
std::string reply_head(int status, const std::vector<Header>& headers, const Framing& framing,
                       std::chrono::system_clock::time_point now);

// "Sun, 06 Nov 1994 08:49:37 GMT"
std::string http_date(std::chrono::system_clock::time_point time);

// False where HTTP allows no body: 204, 304.
bool has_body(int status);

}  // namespace cicada::http
