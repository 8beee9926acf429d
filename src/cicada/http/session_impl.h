// One connection: reads requests one at a time, hands each to the handler, writes what the exchange
// says, watches for the client's leaving and for every time limit.
//
// The connection is read as long as it lives, also while a handler works: that is how a client that
// leaves is noticed. What a client sends ahead is kept for its next request, up to a bound.
// Lifetime: a session lives while a read, write or timer of it is pending, its exchange exists, or
// the server lists it. Threads: the loop's.
#pragma once

#include <array>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>

#include "cicada/http/exchange.h"
#include "cicada/http/loop_impl.h"
#include "cicada/http/reply_head.h"
#include "cicada/http/request_reader.h"
#include "cicada/http/server.h"
#include "cicada/http/tls.h"

namespace cicada::http {

class Session;
class SessionExchange;

// What a server and its connections share; it lives as long as the last of them.
struct ServerState {
  Loop& loop;
  ServerLimits limits;
  Handler handler;
  Server::Refuse refuse;
  std::unique_ptr<TlsContext> tls;  // null: plain
  bool is_draining = false;
  std::unordered_set<std::shared_ptr<Session>> sessions;
  std::size_t num_surplus = 0;  // of them, those beyond the limit, which are only told so
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  // A surplus connection is told 503 instead of being served.
  enum class Kind : std::uint8_t { kServed, kSurplus };

  Session(std::shared_ptr<ServerState> server, Socket socket, std::string peer, Kind kind);

  // Once, right after construction.
  void start();
  // Closes it if no request has begun on it.
  void close_if_idle();
  // At once, whatever is going on. The exchange learns of it soon.
  void close();
  bool is_busy() const { return phase_ == Phase::kReplying; }

  // For the exchange.
  bool serves(const SessionExchange& exchange) const { return exchange_ == &exchange; }
  void reply(const Response& response);
  void begin_stream(int status, const std::vector<Header>& headers);
  void write_stream(std::string_view piece);
  void end_stream();
  void abort_stream();
  std::size_t buffered_bytes() const { return out_.size() - out_taken_ + next_out_.size(); }
  void post(std::function<void()> work) { server_->loop.post(std::move(work)); }
  // The exchange is being destroyed.
  void drop_exchange();

 private:
  using Clock = std::chrono::steady_clock;
  enum class Phase : std::uint8_t {
    kHandshake,
    kIdle,      // before the first byte of a request
    kHead,      // within a request line or headers
    kBody,      // within a body
    kReplying,  // from the whole request until the last byte of its reply is taken
    kLeaving,   // has said everything; waits for the client to see that
    kClosed,
  };
  enum class Ending : std::uint8_t { kKeepAlive, kClose, kReset };

  // Reading (session.cc).
  void start_reading();
  void on_read(const boost::system::error_code& error, std::size_t size);
  bool take_received(std::string_view received);
  void process_input();
  void follow_reader();
  void start_exchange();
  void on_client_gone();
  void next_request();

  // Writing (session_write.cc).
  void refuse(int status, std::string_view sentence);
  Framing::Connection connection_header() const;
  void send(std::string_view plain);
  void flush();
  void write_some();
  void on_written(const boost::system::error_code& error, std::size_t size);
  void on_all_written();
  void complete_reply();
  void finish_reply();
  void leave();

  // Time (session_time.cc).
  void set_phase(Phase phase);
  void arm_timer();
  void on_timer();
  void on_phase_deadline();
  bool is_peer_gone();

  bool keeps_enough() const;

  std::shared_ptr<ServerState> server_;
  Socket socket_;
  const std::string peer_;
  const Kind kind_;
  Phase phase_ = Phase::kIdle;
  std::unique_ptr<TlsFilter> tls_;  // null: plain

  std::array<char, 16 << 10> received_{};
  bool is_reading_ = false;
  std::string in_;            // plain text that is not read as a request yet
  std::size_t in_begin_ = 0;  // where it begins in in_
  RequestReader reader_;
  bool said_continue_ = false;
  bool is_half_closed_ = false;     // the client sends no more but may still read
  std::size_t unwanted_bytes_ = 0;  // read and thrown away while leaving
  std::size_t tls_talk_bytes_ = 0;  // what TLS made us send by itself

  SessionExchange* exchange_ = nullptr;  // the one that is running; it holds us, not we it
  Ending ending_ = Ending::kKeepAlive;   // what comes behind the reply
  bool is_http11_ = true;                // of the request that is answered
  bool is_head_request_ = false;
  bool has_reply_ = false;  // begun
  bool is_reply_complete_ = false;
  bool sends_body_ = true;
  bool is_chunked_ = false;
  std::string scratch_;  // a chunk with its frame

  bool is_writing_ = false;
  std::string out_;            // being written
  std::size_t out_taken_ = 0;  // of out_, by the operating system
  std::string next_out_;       // comes next
  bool is_shut_ = false;       // our side has ended

  boost::asio::steady_timer timer_;
  Clock::time_point timer_at_ = Clock::time_point::max();  // max(): not set
  Clock::time_point phase_deadline_ = Clock::time_point::max();
  Clock::time_point write_deadline_ = Clock::time_point::max();
  Clock::time_point look_deadline_ = Clock::time_point::max();  // for is_peer_gone()
  Clock::time_point leave_deadline_ = Clock::time_point::max();
};

// What the handler sees of a session's current request.
class SessionExchange final : public Exchange {
 public:
  SessionExchange(std::shared_ptr<Session> session, Request request)
      : session_(std::move(session)), request_(std::move(request)) {}
  ~SessionExchange() override;
  SessionExchange(const SessionExchange&) = delete;
  SessionExchange& operator=(const SessionExchange&) = delete;

  const Request& request() const override { return request_; }
  void respond(Response response) override;
  void begin(int status, std::vector<Header> headers) override;
  void write(std::string piece) override;
  void end() override;
  void abort() override;
  std::size_t buffered_bytes() const override;
  void on_drained(std::function<void()> callback) override { on_drained_ = std::move(callback); }
  void on_closed(std::function<void()> callback) override;
  bool is_closed() const override { return is_closed_; }

  // From the session, which is no longer ours after the last two.
  void tell_drained();
  void tell_closed();
  void tell_finished();

 private:
  enum class Stage : std::uint8_t { kOpen, kStreaming, kEnded };

  bool is_served() const { return session_->serves(*this); }

  std::shared_ptr<Session> session_;
  Request request_;
  Stage stage_ = Stage::kOpen;
  bool is_closed_ = false;
  std::function<void()> on_drained_;
  std::function<void()> on_closed_;
};

}  // namespace cicada::http
