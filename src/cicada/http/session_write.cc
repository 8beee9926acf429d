// Session: its writing.
#include <fmt/format.h>
#include <sys/socket.h>

#include <boost/asio/socket_base.hpp>
#include <iterator>
#include <utility>

#include "cicada/base/check.h"
#include "cicada/http/session_impl.h"

namespace cicada::http {
namespace {

namespace asio = boost::asio;

// Buffers that a large reply has left behind are given back.
constexpr std::size_t kMaxKeptBufferBytes = std::size_t{64} << 10;
constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace

// A reply of the server's own to what cannot be served; what comes behind cannot be read.
void Session::refuse(int status, std::string_view sentence) {
  set_phase(Phase::kReplying);
  ending_ = Ending::kClose;
  is_http11_ = reader_.is_http11();
  is_head_request_ = reader_.request().method == "HEAD";
  reply(server_->refuse(status, sentence, reader_.request()));
}

void Session::drop_exchange() {
  const SessionExchange& exchange = *std::exchange(exchange_, nullptr);
  if (is_reply_complete_) return;
  if (has_reply_) return abort_stream();
  reply(server_->refuse(500, "the request was not answered", exchange.request()));
}

Framing::Connection Session::connection_header() const {
  if (ending_ != Ending::kKeepAlive) return Framing::Connection::kClose;
  return is_http11_ ? Framing::Connection::kUnsaid : Framing::Connection::kKeepAlive;
}

void Session::reply(const Response& response) {
  CICADA_CHECK(response.status >= 200 && response.status < 600, "a final status");
  has_reply_ = true;
  if (server_->is_draining) ending_ = Ending::kClose;
  Framing framing{.connection = connection_header()};
  if (has_body(response.status)) framing.content_length = response.body.size();
  std::string text =
      reply_head(response.status, response.headers, framing, std::chrono::system_clock::now());
  if (has_body(response.status) && !is_head_request_) text += response.body;
  send(text);
  complete_reply();
}

void Session::begin_stream(int status, const std::vector<Header>& headers) {
  CICADA_CHECK(status >= 200 && status < 600, "a final status");
  has_reply_ = true;
  sends_body_ = has_body(status) && !is_head_request_;
  is_chunked_ = is_http11_ && has_body(status);
  // HTTP/1.0 knows no chunks: the end of the connection is the end of the stream.
  if (server_->is_draining || (!is_http11_ && has_body(status))) ending_ = Ending::kClose;
  send(reply_head(status, headers,
                  Framing{.is_chunked = is_chunked_, .connection = connection_header()},
                  std::chrono::system_clock::now()));
}

void Session::write_stream(std::string_view piece) {
  // An empty chunk would end the body.
  if (!sends_body_ || piece.empty()) return;
  if (!is_chunked_) return send(piece);
  scratch_.clear();
  fmt::format_to(std::back_inserter(scratch_), "{:x}\r\n", piece.size());
  scratch_ += piece;
  scratch_ += "\r\n";
  send(scratch_);
}

void Session::end_stream() {
  if (sends_body_ && is_chunked_) send(kLastChunk);
  complete_reply();
}

void Session::abort_stream() {
  // Without chunks only a reset tells a broken stream from a whole one.
  ending_ = is_chunked_ ? Ending::kClose : Ending::kReset;
  complete_reply();
}

void Session::send(std::string_view plain) {
  if (tls_) {
    tls_->seal(plain, next_out_);
  } else {
    next_out_ += plain;
  }
  flush();
}

// Hands what waits to the operating system, all in one write, unless one is under way.
void Session::flush() {
  if (is_writing_ || next_out_.empty() || phase_ == Phase::kClosed) return;
  out_.clear();
  if (out_.capacity() > kMaxKeptBufferBytes) out_ = {};
  std::swap(out_, next_out_);
  out_taken_ = 0;
  write_deadline_ = Clock::now() + server_->limits.write_time;
  write_some();
  arm_timer();
}

void Session::write_some() {
  is_writing_ = true;
  socket_.async_write_some(
      asio::buffer(out_.data() + out_taken_, out_.size() - out_taken_),
      [self = shared_from_this()](auto error, std::size_t size) { self->on_written(error, size); });
}

void Session::on_written(const boost::system::error_code& error, std::size_t size) {
  is_writing_ = false;
  if (phase_ == Phase::kClosed) return;
  if (error) return close();
  out_taken_ += size;
  write_deadline_ = Clock::now() + server_->limits.write_time;
  if (out_taken_ < out_.size()) return write_some();
  flush();
  if (!is_writing_) on_all_written();
}

void Session::on_all_written() {
  out_.clear();
  out_taken_ = 0;
  write_deadline_ = Clock::time_point::max();
  if (exchange_ != nullptr) exchange_->tell_drained();
  finish_reply();
  if (phase_ == Phase::kLeaving) leave();
}

void Session::complete_reply() {
  is_reply_complete_ = true;
  if (buffered_bytes() > 0) return;  // the last write goes on from here
  // Nothing left to write, as behind a stream to HEAD. Posted: the handler may be calling.
  post([self = shared_from_this()] { self->finish_reply(); });
}

// Goes on behind a reply, once everything is taken.
void Session::finish_reply() {
  if (phase_ != Phase::kReplying || !is_reply_complete_ || buffered_bytes() > 0) return;
  if (exchange_ != nullptr) std::exchange(exchange_, nullptr)->tell_finished();
  if (ending_ == Ending::kReset) {
    boost::system::error_code ignored;
    socket_.set_option(asio::socket_base::linger(true, 0), ignored);
    return close();
  }
  if (is_half_closed_) return close();
  if (ending_ == Ending::kKeepAlive && !server_->is_draining) return next_request();
  if (tls_) tls_->end(next_out_);
  set_phase(Phase::kLeaving);
  flush();
  if (!is_writing_) leave();
}

// Ends our side, and reads on until the client ends its own: closing with unread input would reset
// the connection, and the client might lose the reply.
void Session::leave() {
  if (!std::exchange(is_shut_, true)) {
    boost::system::error_code ignored;
    socket_.shutdown(asio::socket_base::shutdown_send, ignored);
  }
  in_.clear();
  in_begin_ = 0;
  start_reading();
}

}  // namespace cicada::http
