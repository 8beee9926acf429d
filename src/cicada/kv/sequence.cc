#include "cicada/kv/sequence.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace cicada::kv {

Sequence::Sequence(Sequence&& other) noexcept
    : pool_(other.pool_),
      pages_(std::exchange(other.pages_, {})),
      memory_(std::exchange(other.memory_, {})) {}

void Sequence::expect(std::size_t num_tokens) {
  const std::size_t pages = layout().pages_of(num_tokens);
  pages_.reserve(pages);
  memory_.reserve(pages);
}

void Sequence::append(PageId id) {
  pages_.push_back(id);
  memory_.push_back(pool_->page(id));
}

Result<void> Sequence::reserve(std::size_t num_tokens) {
  while (capacity_tokens() < num_tokens) {
    CICADA_ASSIGN(const PageId id, pool_->allocate());
    append(id);
  }
  return {};
}

void Sequence::truncate(std::size_t num_tokens) {
  const std::size_t keep = layout().pages_of(num_tokens);
  while (pages_.size() > keep) {
    pool_->release(pages_.back());
    pages_.pop_back();
    memory_.pop_back();
  }
}

void Sequence::share(std::span<const PageId> pages) {
  for (const PageId id : pages) {
    pool_->retain(id);
    append(id);
  }
}

Sequence Sequence::fork() const {
  Sequence copy(*pool_);
  copy.share(pages_);
  return copy;
}

Result<void> Sequence::make_writable(std::size_t begin, std::size_t end) {
  const std::size_t page_tokens = layout().page_tokens();
  const std::size_t last = std::min(layout().pages_of(end), pages_.size());
  for (std::size_t page = begin / page_tokens; page < last; ++page) {
    const PageId old = pages_[page];
    if (pool_->num_holders(old) == 1) continue;
    CICADA_ASSIGN(const PageId id, pool_->allocate());
    // The room that the copy needed may have made the page ours: then it was not needed.
    if (pool_->num_holders(old) == 1) {
      pool_->release(id);
      continue;
    }
    std::memcpy(pool_->page(id), memory_[page], layout().page_bytes());
    pages_[page] = id;
    memory_[page] = pool_->page(id);
    pool_->release(old);
  }
  return {};
}

}  // namespace cicada::kv
