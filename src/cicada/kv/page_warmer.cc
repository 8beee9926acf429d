#include "cicada/kv/page_warmer.h"

#include <algorithm>

#include "cicada/platform/populate.h"

namespace cicada::kv {

PageWarmer::PageWarmer(PagePool& pool, std::size_t ahead)
    : memory_(pool.num_pages() == 0 ? nullptr : pool.page(PageId(0))),
      page_bytes_(pool.layout().page_bytes()),
      num_pages_(pool.num_pages()),
      ahead_(ahead),
      wanted_(std::min(ahead, num_pages_)),
      thread_([this] { run(); }) {}

PageWarmer::~PageWarmer() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void PageWarmer::note_used(std::size_t used) {
  if (used <= noted_) return;
  noted_ = used;
  {
    const std::lock_guard lock(mutex_);
    wanted_ = std::min(used + ahead_, num_pages_);
  }
  changed_.notify_one();
}

void PageWarmer::run() noexcept {
  platform::run_when_idle();
  std::size_t warm = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return is_stopping_ || warm < wanted_; });
    if (is_stopping_) return;
    lock.unlock();
    const bool is_done = platform::populate(memory_ + warm * page_bytes_, page_bytes_);
    lock.lock();
    // Where the system cannot, pages are touched when they are used.
    if (!is_done) return;
    ++warm;
  }
}

}  // namespace cicada::kv
