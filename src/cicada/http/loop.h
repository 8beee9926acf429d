// The front's event loop: everything that is not asked of another thread happens on it, one thing
// at a time, so that what lives on it needs no locks.
//
// Hides Asio: only the sources of this module see it.
// Threads: post() from any; the rest on the loop's own thread unless said otherwise.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace cicada::http {

// A pending callback; destroying or cancelling it means that it will not be called.
class Timer {
 public:
  virtual ~Timer() = default;
};

class Loop {
 public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Runs until stop(). What is posted before is done first.
  void run();
  // Threads: any.
  void stop();

  // Calls `work` on the loop's thread, after what was posted before. Threads: any.
  void post(std::function<void()> work);
  // Calls `work` once after `delay`, unless the timer is destroyed first.
  [[nodiscard]] std::unique_ptr<Timer> after(std::chrono::nanoseconds delay,
                                             std::function<void()> work);

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace cicada::http
