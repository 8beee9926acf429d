#include "cicada/platform/work_sharing.h"

#include <algorithm>

namespace cicada::platform {

WorkSharing::WorkSharing(std::size_t num_workers)
    : num_workers_(num_workers), cursors_(2 * (num_workers + 1)), rounds_(num_workers) {}

// The cursors of the next round were last used in the round before this one, and the barrier
// between the two tells that everybody has left it; the barrier after this round tells everybody
// that they are zero. So no order is asked of the cursors themselves.
void WorkSharing::open(std::size_t worker_idx) {
  const std::size_t next = ++rounds_[worker_idx].number + 1;
  cursor(next, worker_idx).taken.store(0, std::memory_order_relaxed);
  if (worker_idx == 0) cursor(next, num_workers_).taken.store(0, std::memory_order_relaxed);
}

Range WorkSharing::take(std::size_t worker_idx, std::size_t count, std::size_t most) {
  const std::size_t round = rounds_[worker_idx].number;
  for (std::size_t i = 0; i < num_workers_; ++i) {
    const std::size_t owner = (worker_idx + i) % num_workers_;
    const Range share = partition(count, owner, num_workers_);
    const std::size_t size = share.end - share.begin;
    std::atomic<std::size_t>& taken = cursor(round, owner).taken;
    std::size_t at = taken.load(std::memory_order_relaxed);
    while (at < size) {
      const std::size_t piece = std::clamp<std::size_t>((size - at) / 2, 1, most);
      if (taken.compare_exchange_weak(at, at + piece, std::memory_order_relaxed)) {
        return {share.begin + at, share.begin + at + piece};
      }
    }
  }
  return {};
}

std::size_t WorkSharing::ticket(std::size_t worker_idx) {
  return cursor(rounds_[worker_idx].number, num_workers_)
      .taken.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace cicada::platform
