// One request and its reply, as a handler sees it.
//
// Requests are whole when a handler gets them (the server bounds their size and time). A reply is
// one message, or a stream of pieces that are sent as they come. Nothing here blocks: what cannot
// be sent yet is kept, and `buffered_bytes` says how much, so that the maker of a stream can wait.
// Threads: the loop's.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cicada::http {

struct Header {
  std::string name;  // any case
  std::string value;
};

struct Request {
  std::string method;  // "GET"
  std::string path;    // percent-decoded, without the query: "/v1/models/x"
  // Percent-decoded, in order; a name may come again.
  std::vector<std::pair<std::string, std::string>> query;
  std::vector<Header> headers;
  std::string body;
  std::string peer;  // address of the client, or "unix"

  // The first header of that name (any case); empty when there is none.
  std::string_view header(std::string_view name) const;
  std::string_view query_value(std::string_view name) const;
};

struct Response {
  int status = 200;
  std::vector<Header> headers;  // content-length, date and connection are the server's
  std::string body;
};

class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const Request& request() const = 0;

  // The whole reply. Either this or begin() is called, once.
  virtual void respond(Response response) = 0;

  // The head of a streamed reply (chunked; flushed at once, without delay).
  virtual void begin(int status, std::vector<Header> headers) = 0;
  // A piece of the body. Ignored once the client is gone, and behind the end.
  virtual void write(std::string piece) = 0;
  // The regular end of a stream.
  virtual void end() = 0;
  // The end of a stream that cannot be completed: the connection is closed behind what was written,
  // so that the client sees that something is missing. Without a stream: closed without a reply.
  virtual void abort() = 0;

  // Written and not yet taken by the operating system.
  virtual std::size_t buffered_bytes() const = 0;
  // Called each time that buffered_bytes() has fallen to zero.
  virtual void on_drained(std::function<void()> callback) = 0;

  // Called once when the client has gone, or reads so slowly that the server gave it up, before the
  // reply was complete. Nothing needs to be written then. If it happened before: called soon.
  virtual void on_closed(std::function<void()> callback) = 0;
  virtual bool is_closed() const = 0;
};

// Handles one request; may keep the exchange and answer later. An exchange that is dropped without
// a reply is answered with 500, a stream that is dropped without its end is aborted. An exchange
// may outlive the server, but not the loop.
using Handler = std::function<void(std::shared_ptr<Exchange>)>;

}  // namespace cicada::http
