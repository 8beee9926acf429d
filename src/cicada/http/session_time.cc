// Session: its time limits.
#include <poll.h>

#include <algorithm>

#include "cicada/http/session_impl.h"

namespace cicada::http {
namespace {

using std::chrono::milliseconds;

// How long a client may take to notice that we have left: without a byte of it, and in all.
constexpr milliseconds kLeaveQuietTime{2'000};
constexpr milliseconds kLeaveTime{30'000};
// A connection beyond the limit that asks nothing is told so after this.
constexpr milliseconds kSurplusTime{1'000};
// How often a client that has sent so much ahead that it is not read is looked after.
constexpr milliseconds kLookTime{50};

}  // namespace

// Enters a phase, or begins its time again.
void Session::set_phase(Phase phase) {
  const ServerLimits& limits = server_->limits;
  const auto now = Clock::now();
  if (phase == Phase::kLeaving && phase_ != Phase::kLeaving) leave_deadline_ = now + kLeaveTime;
  phase_ = phase;
  switch (phase) {
    case Phase::kHandshake:
    case Phase::kHead:
      phase_deadline_ = now + limits.header_time;
      break;
    case Phase::kIdle:
      phase_deadline_ = now + (kind_ == Kind::kSurplus ? kSurplusTime : limits.idle_time);
      break;
    case Phase::kBody:
      phase_deadline_ = now + limits.body_time;
      break;
    case Phase::kLeaving:
      phase_deadline_ = std::min(now + kLeaveQuietTime, leave_deadline_);
      break;
    case Phase::kReplying:
    case Phase::kClosed:
      phase_deadline_ = Clock::time_point::max();
      break;
  }
  arm_timer();
}

// Makes sure that the timer runs out by the next deadline. It is not put off when a deadline moves
// away: it then finds nothing to do and is set again, which is rarer than deadlines that move.
void Session::arm_timer() {
  if (phase_ == Phase::kClosed) return;
  look_deadline_ = keeps_enough() ? std::min(look_deadline_, Clock::now() + kLookTime)
                                  : Clock::time_point::max();
  const auto next = std::min({phase_deadline_, write_deadline_, look_deadline_});
  if (next >= timer_at_) return;
  timer_at_ = next;
  timer_.expires_at(next);
  timer_.async_wait([self = shared_from_this(), next](boost::system::error_code error) {
    // Another one was set instead.
    if (error || self->timer_at_ != next) return;
    self->timer_at_ = Clock::time_point::max();
    self->on_timer();
  });
}

void Session::on_timer() {
  if (phase_ == Phase::kClosed) return;
  const auto now = Clock::now();
  if (now >= write_deadline_) return close();
  if (now >= look_deadline_) {
    look_deadline_ = Clock::time_point::max();
    if (is_peer_gone()) return on_client_gone();
  }
  if (now >= phase_deadline_) on_phase_deadline();
  arm_timer();
}

void Session::on_phase_deadline() {
  phase_deadline_ = Clock::time_point::max();
  switch (phase_) {
    case Phase::kHead:
      return refuse(408, "the request's headers did not arrive in time");
    case Phase::kBody:
      return refuse(408, "the request's body did not arrive in time");
    case Phase::kIdle:
      if (kind_ == Kind::kSurplus) return refuse(503, "too many connections; try again later");
      return close_if_idle();
    default:
      return close();
  }
}

// What reading would tell, without reading.
bool Session::is_peer_gone() {
  pollfd look{.fd = socket_.native_handle(), .events = POLLRDHUP, .revents = 0};
  return ::poll(&look, 1, 0) > 0 && (look.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

}  // namespace cicada::http
