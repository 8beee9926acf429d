// One pool of workers for the whole process, and the barrier they meet at.
//
// run() is a parallel region: every worker, the caller among them as worker 0, calls the function
// once and run() returns when all have. Who waits, at a barrier or for a region, spins a bounded
// time and then sleeps; with more workers than this process may use at once it sleeps right away.
// So an idle pool costs nothing, and a core is not held by those who wait for another to get one.
// Threads: run() from one thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace cicada::platform {

// A number that one thread sets while others wait for it to change. Setting it costs no system call
// while nobody sleeps. Each part lies on a cache line of its own: spinning waiters take the value's
// away from who sets it, and would take the other's along.
class Signal {
 public:
  // Writes before set() are visible to whoever saw its value.
  std::uint32_t value() const { return value_.load(std::memory_order_acquire); }
  void set(std::uint32_t value);

  // Returns when the value is not `old`. Without `spin` it sleeps right away.
  void wait_while(std::uint32_t old, bool spin);

 private:
  alignas(64) std::atomic<std::uint32_t> value_{0};
  alignas(64) std::atomic<std::uint32_t> sleepers_{0};
};

// A sense-reversing barrier.
class Barrier {
 public:
  explicit Barrier(std::size_t num_workers) : num_workers_(num_workers) {}

  // Only while nobody waits.
  void set_workers(std::size_t num_workers, bool spin) {
    num_workers_ = num_workers;
    spin_ = spin;
  }
  Barrier(const Barrier&) = delete;
  Barrier& operator=(const Barrier&) = delete;

  // Returns when all workers have arrived; writes before it are visible to all after it.
  void wait();

 private:
  std::size_t num_workers_;
  bool spin_ = true;
  alignas(64) std::atomic<std::size_t> arrived_{0};
  Signal generation_;
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

  const bool spin_;              // a core for each worker
  std::size_t num_workers_ = 1;  // the caller, and every thread that started
  Barrier barrier_{1};
  Borrowed work_;                                    // valid during a region
  Signal region_;                                    // counts regions
  Signal done_;                                      // the last region that all workers left
  alignas(64) std::atomic<std::size_t> running_{0};  // workers still inside the region
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
