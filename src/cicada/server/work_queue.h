// One thread for work that would hold up the loop: rendering and tokenising.
// Threads: any.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace cicada::server {

// Work is done in order. What has not begun when it is destroyed is dropped. Not bounded here:
// there is at most one piece of work for each of a bounded number of connections.
class WorkQueue {
 public:
  WorkQueue();
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void post(std::function<void()> work);

 private:
  void run() noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;  // guarded by mutex_
  bool is_stopping_ = false;                // guarded by mutex_
  std::thread thread_;
};

}  // namespace cicada::server
