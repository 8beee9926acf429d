// Has memory of pages ready before a sequence needs it: the first touch of a page costs more than
// a step of a small model, and would be a gap in every answer that runs.
//
// A thread of its own, which runs when a processor has nothing else to do. Threads: wants() by one.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>

#include "cicada/kv/page_pool.h"

namespace cicada::kv {

class PageWarmer {
 public:
  // Keeps the memory of `ahead` pages ready beyond those that were ever used. Lifetime: borrows the
  // pool's memory.
  PageWarmer(PagePool& pool, std::size_t ahead);
  ~PageWarmer();
  PageWarmer(const PageWarmer&) = delete;
  PageWarmer& operator=(const PageWarmer&) = delete;

  // Pages [0, used) have been used. Cheap.
  void note_used(std::size_t used);

 private:
  void run() noexcept;

  std::byte* const memory_;
  const std::size_t page_bytes_;
  const std::size_t num_pages_;
  const std::size_t ahead_;
  std::size_t noted_ = 0;  // note_used()'s thread only
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t wanted_ = 0;    // guarded by mutex_
  bool is_stopping_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace cicada::kv
