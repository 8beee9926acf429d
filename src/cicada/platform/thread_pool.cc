#include "cicada/platform/thread_pool.h"

#include <immintrin.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <system_error>

#include "cicada/base/check.h"
#include "cicada/platform/topology.h"

namespace cicada::platform {
namespace {

// Pauses of some 300 microseconds in all: longer than any step of a small model and than most of
// the times for which a host takes a core away, shorter than a scheduler's slice. With a quarter of
// it decode was slower by up to a tenth: to wake a sleeper takes as long as many steps.
constexpr int kPauses = 20000;

long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
  static_assert(sizeof word == sizeof(std::uint32_t));
  return ::syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

}  // namespace

void Signal::set(std::uint32_t value) {
  // Both accesses are sequentially consistent, as are the sleeper's: either it is counted here, or
  // it finds the new value.
  value_.store(value, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) != 0) futex(value_, FUTEX_WAKE_PRIVATE, INT_MAX);
}

void Signal::wait_while(std::uint32_t old, bool spin) {
  for (int i = 0; spin && i < kPauses; ++i) {
    if (value() != old) return;
    _mm_pause();
  }
  // Asleep, not yielding: whoever yields loses a whole slice to a program that is busy.
  if (value() != old) return;
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  while (value_.load(std::memory_order_seq_cst) == old) futex(value_, FUTEX_WAIT_PRIVATE, old);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void Barrier::wait() {
  if (num_workers_ == 1) return;
  // Acquire/release on arrived_ orders every worker's writes before the last arrival, whose setting
  // of generation_ publishes them to all.
  const std::uint32_t generation = generation_.value();
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == num_workers_) {
    arrived_.store(0, std::memory_order_relaxed);
    generation_.set(generation + 1);
  } else {
    generation_.wait_while(generation, spin_);
  }
}

ThreadPool::ThreadPool(std::size_t num_workers) : spin_(num_workers <= usable_threads()) {
  CICADA_CHECK(num_workers >= 1, "a pool has at least the calling thread");
  threads_.reserve(num_workers - 1);
  try {
    for (; num_workers_ < num_workers; ++num_workers_) {
      threads_.emplace_back([this, idx = num_workers_] { worker_loop(idx); });
    }
  } catch (const std::system_error&) {  // the only way in which std::thread says that it failed
  }
  barrier_.set_workers(num_workers_, spin_);
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
  region_.set(region_.value() + 1);
  for (std::thread& thread : threads_) thread.join();
}

void ThreadPool::run_region(Borrowed work) {
  if (num_workers_ == 1) {
    work.call(work.object, 0);
    return;
  }
  work_ = work;
  running_.store(num_workers_ - 1, std::memory_order_relaxed);
  const std::uint32_t last = region_.value();
  region_.set(last + 1);  // publishes work_ and running_
  work.call(work.object, 0);
  done_.wait_while(last, spin_);
}

void ThreadPool::worker_loop(std::size_t worker_idx) {
  for (std::uint32_t region = 1;; ++region) {
    region_.wait_while(region - 1, spin_);
    if (stop_.load(std::memory_order_relaxed)) return;
    work_.call(work_.object, worker_idx);
    // Acquire/release orders every worker's writes before the last end, which publishes them.
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) done_.set(region);
  }
}

}  // namespace cicada::platform
