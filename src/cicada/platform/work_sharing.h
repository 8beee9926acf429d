// How the workers of a region divide a step among them while it runs.
//
// Every worker has a share of its own, the same as platform::partition gives, and takes it in
// pieces from the front; a worker that is done helps the others with theirs. So a worker that was
// held up (another process, a neighbour that uses the memory) does not make the rest wait. Who
// computes a unit changes no bit of it.
// Threads: all workers open the same rounds in the same order and meet at a barrier between two.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cicada/platform/thread_pool.h"

namespace cicada::platform {

class WorkSharing {
 public:
  explicit WorkSharing(std::size_t num_workers);

  // Begins a round, before the worker's first take() or ticket() of it.
  void open(std::size_t worker_idx);

  // The next units of `count`, at most `most` and fewer towards the end of a share; empty: all are
  // taken. Every worker of the round passes the same `count`.
  Range take(std::size_t worker_idx, std::size_t count, std::size_t most);

  // 0, 1, 2, …: each is given once in a round.
  std::size_t ticket(std::size_t worker_idx);

 private:
  struct alignas(64) Cursor {
    std::atomic<std::size_t> taken{0};
  };
  struct alignas(64) Round {
    std::size_t number = 0;
  };

  Cursor& cursor(std::size_t round, std::size_t idx) {
    return cursors_[(round % 2) * (num_workers_ + 1) + idx];
  }

  std::size_t num_workers_;
  std::vector<Cursor> cursors_;  // of this round and the next: one a worker, one for tickets
  std::vector<Round> rounds_;    // by worker
};

}  // namespace cicada::platform
