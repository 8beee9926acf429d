// Session: its life and its reading.
#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <utility>

#include "cicada/http/session_impl.h"

namespace cicada::http {
namespace {

namespace asio = boost::asio;

// What a client may send ahead of its turn.
constexpr std::size_t kMaxAheadBytes = std::size_t{64} << 10;
// What is read and thrown away behind a refusal, so that the client gets to see the reply rather
// than a reset: some read only when they have sent everything.
constexpr std::size_t kMaxUnwantedBytes = std::size_t{64} << 20;
// Handshake, tickets and key updates of an honest client stay far below.
constexpr std::size_t kMaxTlsTalkBytes = std::size_t{64} << 10;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace

Session::Session(std::shared_ptr<ServerState> server, Socket socket, std::string peer, Kind kind)
    : server_(std::move(server)),
      socket_(std::move(socket)),
      peer_(std::move(peer)),
      kind_(kind),
      reader_(server_->limits.max_header_bytes, server_->limits.max_body_bytes, peer_),
      timer_(server_->loop.impl().context) {
  if (server_->tls) tls_ = std::make_unique<TlsFilter>(*server_->tls);
}

void Session::start() {
  server_->sessions.insert(shared_from_this());
  if (kind_ == Kind::kSurplus) ++server_->num_surplus;
  if (peer_ != "unix") {
    boost::system::error_code ignored;
    socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  }
  set_phase(tls_ ? Phase::kHandshake : Phase::kIdle);
  start_reading();
}

void Session::close_if_idle() {
  if (phase_ != Phase::kIdle && phase_ != Phase::kHandshake) return;
  // Best effort: a TLS client should see that this is a regular end.
  if (tls_) tls_->end(next_out_);
  flush();
  close();
}

void Session::close() {
  if (phase_ == Phase::kClosed) return;
  const auto self = shared_from_this();
  phase_ = Phase::kClosed;
  boost::system::error_code ignored;
  timer_.cancel();
  socket_.close(ignored);
  server_->sessions.erase(self);
  if (kind_ == Kind::kSurplus) --server_->num_surplus;
  if (exchange_ != nullptr) std::exchange(exchange_, nullptr)->tell_closed();
}

// The client is read no further than this while it has to wait.
bool Session::keeps_enough() const {
  return phase_ == Phase::kReplying && in_.size() - in_begin_ >= kMaxAheadBytes;
}

void Session::start_reading() {
  if (is_reading_ || is_half_closed_ || phase_ == Phase::kClosed) return;
  if (keeps_enough()) return arm_timer();  // which looks after the client instead
  is_reading_ = true;
  socket_.async_read_some(
      asio::buffer(received_),
      [self = shared_from_this()](auto error, std::size_t size) { self->on_read(error, size); });
}

void Session::on_read(const boost::system::error_code& error, std::size_t size) {
  is_reading_ = false;
  if (phase_ == Phase::kClosed) return;
  if (error) return on_client_gone();
  if (phase_ == Phase::kLeaving) {
    unwanted_bytes_ += size;
    if (unwanted_bytes_ > kMaxUnwantedBytes) return close();
    set_phase(Phase::kLeaving);
  } else if (take_received(std::string_view(received_.data(), size))) {
    process_input();
  }
  start_reading();
}

// Puts what came into in_; false when the connection has ended by that.
bool Session::take_received(std::string_view received) {
  in_.erase(0, std::exchange(in_begin_, 0));
  if (!tls_) {
    in_.append(received);
    return true;
  }
  const std::size_t queued_bytes = next_out_.size();
  const TlsFilter::State state = tls_->open(received, in_, next_out_);
  tls_talk_bytes_ += next_out_.size() - queued_bytes;
  flush();
  if (state == TlsFilter::State::kFailed || tls_talk_bytes_ > kMaxTlsTalkBytes) {
    close();
    return false;
  }
  if (phase_ == Phase::kHandshake && state != TlsFilter::State::kHandshake) set_phase(Phase::kIdle);
  if (state != TlsFilter::State::kEnded) return true;
  // What came before the end is still a request.
  process_input();
  if (phase_ != Phase::kClosed) on_client_gone();
  return false;
}

// Reads requests out of what has come, up to the one that has to be answered first.
void Session::process_input() {
  if (phase_ != Phase::kIdle && phase_ != Phase::kHead && phase_ != Phase::kBody) return;
  in_begin_ += reader_.read(std::string_view(in_).substr(in_begin_));
  if (in_begin_ == in_.size()) {
    in_.clear();
    in_begin_ = 0;
  }
  follow_reader();
}

void Session::follow_reader() {
  if (reader_.state() == RequestReader::State::kRefused) {
    return refuse(reader_.status(), reader_.sentence());
  }
  if (kind_ == Kind::kSurplus && reader_.has_head()) {
    return refuse(503, "too many connections; try again later");
  }
  if (reader_.state() == RequestReader::State::kComplete) return start_exchange();
  if (reader_.has_head()) {
    if (phase_ != Phase::kBody) set_phase(Phase::kBody);
    if (reader_.expects_continue() && !std::exchange(said_continue_, true)) send(kContinue);
  } else if (reader_.has_begun() && phase_ == Phase::kIdle) {
    set_phase(Phase::kHead);
  }
}

void Session::start_exchange() {
  set_phase(Phase::kReplying);
  is_http11_ = reader_.is_http11();
  is_head_request_ = reader_.request().method == "HEAD";
  ending_ = reader_.keep_alive() ? Ending::kKeepAlive : Ending::kClose;
  const auto exchange =
      std::make_shared<SessionExchange>(shared_from_this(), reader_.take_request());
  exchange_ = exchange.get();
  server_->handler(exchange);
}

// The other side has ended or broken the connection.
void Session::on_client_gone() {
  is_half_closed_ = true;
  // A reply that is complete is still sent: the client may read on.
  if (phase_ == Phase::kReplying && is_reply_complete_) {
    ending_ = Ending::kClose;
    return;
  }
  close();
}

// Behind a reply on a connection that stays.
void Session::next_request() {
  reader_ = RequestReader(server_->limits.max_header_bytes, server_->limits.max_body_bytes, peer_);
  has_reply_ = false;
  is_reply_complete_ = false;
  said_continue_ = false;
  sends_body_ = true;
  is_chunked_ = false;
  set_phase(Phase::kIdle);
  process_input();
  start_reading();
}

}  // namespace cicada::http
