#include "cicada/engine/engine_loop.h"

#include <utility>

namespace cicada::engine {
namespace {

constexpr std::chrono::milliseconds kStatsInterval{100};

}  // namespace

void EngineLoop::run(messages::Hello hello) {
  Engine::Events events;
  events.emplace_back(std::move(hello));
  std::vector<messages::ToEngine> messages;
  bool is_idle = true;
  while (true) {
    add_stats(events, is_idle);
    if (!events.empty()) emit_(std::exchange(events, {}));
    if (!take(messages, is_idle)) return;
    for (messages::ToEngine& message : messages) engine_->receive(std::move(message), events);
    messages.clear();
    is_idle = !engine_->step(events);
  }
}

// What was posted, if anything; waits for it when idle. False: it is time to stop.
bool EngineLoop::take(std::vector<messages::ToEngine>& messages, bool is_idle) {
  std::unique_lock lock(mutex_);
  if (is_idle) changed_.wait(lock, [this] { return is_stopping_ || !inbox_.empty(); });
  if (is_stopping_) return false;
  messages.swap(inbox_);
  return true;
}

// Every now and then while there is work, and once when there is none any more.
void EngineLoop::add_stats(Engine::Events& events, bool is_idle) {
  const bool was_told = is_idle && has_told_idle_;
  has_told_idle_ = is_idle;
  const auto now = std::chrono::steady_clock::now();
  const bool is_due = now - stats_time_ >= kStatsInterval;
  if (is_idle ? was_told : !is_due) return;
  stats_time_ = now;
  events.emplace_back(engine_->take_stats());
}

void EngineLoop::post(std::vector<messages::ToEngine> messages) {
  {
    const std::lock_guard lock(mutex_);
    for (messages::ToEngine& message : messages) inbox_.push_back(std::move(message));
  }
  changed_.notify_one();
}

void EngineLoop::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_one();
}

}  // namespace cicada::engine
