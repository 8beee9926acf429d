#include "cicada/platform/thread_pool.h"

#include <immintrin.h>

#include <system_error>

#include "cicada/base/check.h"

namespace cicada::platform {
namespace {

// About 20 to 50 microseconds of pauses: longer than any step of a small model, shorter than a
// scheduler tick.
constexpr int kSpins = 4000;

// Spins until `flag` differs from `old`, at first with pauses and then yielding.
void spin_while_equal(const std::atomic<std::uint32_t>& flag, std::uint32_t old) {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (flag.load(std::memory_order_acquire) != old) return;
    _mm_pause();
  }
  while (flag.load(std::memory_order_acquire) == old) std::this_thread::yield();
}

}  // namespace

void Barrier::wait() {
  if (num_workers_ == 1) return;
  // Acquire/release on arrived_ orders every worker's writes before the last arrival, whose release
  // of generation_ publishes them to all.
  const std::uint32_t generation = generation_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == num_workers_) {
    arrived_.store(0, std::memory_order_relaxed);
    generation_.store(generation + 1, std::memory_order_release);
    return;
  }
  spin_while_equal(generation_, generation);
}

ThreadPool::ThreadPool(std::size_t num_workers) {
  CICADA_CHECK(num_workers >= 1, "a pool has at least the calling thread");
  threads_.reserve(num_workers - 1);
  try {
    for (; num_workers_ < num_workers; ++num_workers_) {
      threads_.emplace_back([this, idx = num_workers_] { worker_loop(idx); });
    }
  } catch (const std::system_error&) {  // the only way in which std::thread says that it failed
  }
  barrier_.set_workers(num_workers_);
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
  region_.fetch_add(1, std::memory_order_release);
  region_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::run_region(Borrowed work) {
  work_ = work;
  running_.store(static_cast<std::uint32_t>(num_workers_ - 1), std::memory_order_relaxed);
  region_.fetch_add(1, std::memory_order_release);  // publishes work_ and running_
  region_.notify_all();
  work.call(work.object, 0);
  // The workers end within a step of each other, so spinning is short.
  for (int spin = 0; running_.load(std::memory_order_acquire) != 0; ++spin) {
    if (spin < kSpins) {
      _mm_pause();
    } else {
      std::this_thread::yield();
    }
  }
}

void ThreadPool::worker_loop(std::size_t worker_idx) {
  std::uint32_t seen = 0;
  while (true) {
    bool changed = false;
    for (int spin = 0; spin < kSpins && !changed; ++spin) {
      changed = region_.load(std::memory_order_acquire) != seen;
      if (!changed) _mm_pause();
    }
    if (!changed) region_.wait(seen, std::memory_order_acquire);
    if (region_.load(std::memory_order_acquire) == seen) continue;  // spurious wake-up
    ++seen;
    if (stop_.load(std::memory_order_relaxed)) return;
    work_.call(work_.object, worker_idx);
    running_.fetch_sub(1, std::memory_order_release);
  }
}

}  // namespace cicada::platform
