// SessionExchange: what a handler may do with a request, and when it is told what.
#include <utility>

#include "cicada/base/check.h"
#include "cicada/http/session_impl.h"

namespace cicada::http {

SessionExchange::~SessionExchange() {
  if (is_served()) session_->drop_exchange();
}

void SessionExchange::respond(Response response) {
  CICADA_CHECK(stage_ == Stage::kOpen, "an exchange has one reply");
  stage_ = Stage::kEnded;
  if (is_served()) session_->reply(response);
}

void SessionExchange::begin(int status, std::vector<Header> headers) {
  CICADA_CHECK(stage_ == Stage::kOpen, "an exchange has one reply");
  stage_ = Stage::kStreaming;
  if (is_served()) session_->begin_stream(status, headers);
}

void SessionExchange::write(std::string piece) {
  CICADA_CHECK(stage_ != Stage::kOpen, "a stream begins with begin()");
  if (stage_ == Stage::kStreaming && is_served()) session_->write_stream(piece);
}

void SessionExchange::end() {
  CICADA_CHECK(stage_ != Stage::kOpen, "a stream begins with begin()");
  if (std::exchange(stage_, Stage::kEnded) == Stage::kEnded) return;
  if (is_served()) session_->end_stream();
}

void SessionExchange::abort() {
  if (stage_ == Stage::kEnded) return;
  stage_ = Stage::kEnded;
  if (is_served()) session_->abort_stream();
}

std::size_t SessionExchange::buffered_bytes() const {
  return is_served() ? session_->buffered_bytes() : 0;
}

void SessionExchange::on_closed(std::function<void()> callback) {
  if (is_closed_) {
    session_->post(std::move(callback));
  } else if (is_served()) {
    on_closed_ = std::move(callback);
  }
}

void SessionExchange::tell_drained() {
  if (!on_drained_) return;
  // It may set another callback or drop the exchange. Moved rather than copied: this happens for
  // every token of a stream.
  const auto session = session_;
  auto callback = std::move(on_drained_);
  on_drained_ = nullptr;
  callback();
  if (session->serves(*this) && !on_drained_) on_drained_ = std::move(callback);
}

void SessionExchange::tell_closed() {
  is_closed_ = true;
  // Posted, as this may come out of a call of the handler's own.
  if (on_closed_) session_->post(std::move(on_closed_));
  tell_finished();
}

void SessionExchange::tell_finished() {
  // Callbacks often hold the exchange; it may be gone when they are.
  const auto drained = std::exchange(on_drained_, nullptr);
  const auto closed = std::exchange(on_closed_, nullptr);
}

}  // namespace cicada::http
