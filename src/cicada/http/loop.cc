#include "cicada/http/loop.h"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <utility>

#include "cicada/http/loop_impl.h"

namespace cicada::http {
namespace {

class LoopTimer final : public Timer {
 public:
  // Shared, so that a callback that destroys its own timer does not pull itself away.
  struct State {
    boost::asio::steady_timer timer;
    std::function<void()> work;
  };

  explicit LoopTimer(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

}  // namespace

Loop::Loop() : impl_(std::make_unique<Impl>()) {}
Loop::~Loop() = default;

void Loop::run() {
  impl_->context.restart();
  impl_->context.run();
}

void Loop::stop() {
  // Posted, so that what was posted before is done.
  post([this] { impl_->context.stop(); });
}

void Loop::post(std::function<void()> work) { boost::asio::post(impl_->context, std::move(work)); }

std::unique_ptr<Timer> Loop::after(std::chrono::nanoseconds delay, std::function<void()> work) {
  auto state = std::make_shared<LoopTimer::State>(LoopTimer::State{
      .timer = boost::asio::steady_timer(impl_->context, delay), .work = std::move(work)});
  state->timer.async_wait([weak = std::weak_ptr(state)](boost::system::error_code error) {
    // The state is gone when the timer was destroyed, even if it had run out by then.
    const auto alive = weak.lock();
    if (!error && alive) alive->work();
  });
  return std::make_unique<LoopTimer>(std::move(state));
}

}  // namespace cicada::http
