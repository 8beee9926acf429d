// One pool of workers for the whole process, and the barrier they meet at.
//
// run() is a parallel region: every worker, the caller among them as worker 0, calls the function
// once and run() returns when all have. Workers wait between regions by spinning a bounded time and
// then sleeping, so an idle pool costs nothing and an oversubscribed machine is not starved.
// Threads: run() from one thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace cicada::platform {

// A sense-reversing barrier. Each flag lies on a cache line of its own. A waiter spins a bounded
// number of pauses, then yields to the scheduler.
class Barrier {
 public:
  explicit Barrier(std::size_t num_workers) : num_workers_(num_workers) {}

  // Only while nobody waits.
  void set_workers(std::size_t num_workers) { num_workers_ = num_workers; }
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;

  // Returns when all workers have arrived; writes before it are visible to all after it.
  void wait();

 private:
  std::size_t num_workers_;
  alignas(64) std::atomic<std::uint32_t> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> generation_{0};
};

class ThreadPool {
 public:
  // Where the system refuses a thread (memory, a limit on processes), the pool has the workers that
  // it got: size() tells.
  explicit ThreadPool(std::size_t num_workers);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::size_t size() const { return num_workers_; }

  // Calls work(worker_idx) on every worker; `work` must not throw. Allocates nothing.
  template <typename Work>
  void run(const Work& work) {
    run_region(
        {.call = [](const void* object,
                    std::size_t worker_idx) { (*static_cast<const Work*>(object))(worker_idx); },
         .object = &work});
  }

  // The barrier of the running region; only for use inside run().
  Barrier& barrier() { return barrier_; }

 private:
  // A callable that is borrowed for the time of a region.
  struct Borrowed {
    void (*call)(const void* object, std::size_t worker_idx) = nullptr;
    const void* object = nullptr;
  };

  void run_region(Borrowed work);
  void worker_loop(std::size_t worker_idx);

  std::size_t num_workers_ = 1;  // the caller, and every thread that started
  Barrier barrier_{1};
  Borrowed work_;                                      // valid during a region
  alignas(64) std::atomic<std::uint32_t> region_{0};   // counts regions; workers wait on it
  alignas(64) std::atomic<std::uint32_t> running_{0};  // workers still inside the region
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

// The part [begin, end) of `count` units that worker `idx` of `workers` owns; sizes differ by at
// most one.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
};
constexpr Range partition(std::size_t count, std::size_t idx, std::size_t workers) {
  return {count * idx / workers, count * (idx + 1) / workers};
}

}  // namespace cicada::platform
