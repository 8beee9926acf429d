#include "cicada/kv/page_pool.h"

#include <limits>
#include <utility>

#include "cicada/base/check.h"
#include "cicada/base/checked.h"

namespace cicada::kv {

Result<PagePool> PagePool::create(KvLayout layout, std::size_t num_pages) {
  const auto bytes = checked_mul(layout.page_bytes(), num_pages);
  if (!bytes || num_pages > std::numeric_limits<std::int32_t>::max()) {
    return fail(Code::kOutOfMemory, "{} KV pages of {} bytes are more than can be addressed",
                num_pages, layout.page_bytes());
  }
  auto memory = tensor::Buffer::create(*bytes);
  if (!memory) return fail(std::move(memory).error().with_context("KV cache"));
  return PagePool(std::move(layout), std::move(*memory), num_pages);
}

PagePool::PagePool(KvLayout layout, tensor::Buffer memory, std::size_t num_pages)
    : layout_(std::move(layout)), memory_(std::move(memory)), held_(num_pages, false) {
  free_.reserve(num_pages);
  for (std::size_t i = num_pages; i > 0; --i) {
    free_.emplace_back(static_cast<std::int32_t>(i - 1));
  }
}

Result<PageId> PagePool::allocate() {
  if (free_.empty()) {
    return fail(Code::kOutOfCapacity, "all {} KV pages of {} tokens are in use", num_pages(),
                layout_.page_tokens());
  }
  const PageId id = free_.back();
  free_.pop_back();
  held_[static_cast<std::size_t>(id.value)] = true;
  return id;
}

void PagePool::release(PageId id) {
  const auto index = static_cast<std::size_t>(id.value);
  CICADA_CHECK(index < held_.size() && held_[index], "a released page is held");
  held_[index] = false;
  free_.push_back(id);
}

void PagePool::check_conservation() const {
  std::size_t held = 0;
  for (const bool is_held : held_) held += is_held ? 1 : 0;
  CICADA_CHECK(held + free_.size() == held_.size(), "free + held = total");
}

Sequence::Sequence(Sequence&& other) noexcept
    : pool_(other.pool_),
      pages_(std::exchange(other.pages_, {})),
      memory_(std::exchange(other.memory_, {})) {}

Result<void> Sequence::reserve(std::size_t num_tokens) {
  while (capacity_tokens() < num_tokens) {
    CICADA_ASSIGN(const PageId id, pool_->allocate());
    pages_.push_back(id);
    memory_.push_back(pool_->page(id));
  }
  return {};
}

void Sequence::truncate(std::size_t num_tokens) {
  const std::size_t keep = (num_tokens + layout().page_tokens() - 1) / layout().page_tokens();
  while (pages_.size() > keep) {
    pool_->release(pages_.back());
    pages_.pop_back();
    memory_.pop_back();
  }
}

}  // namespace cicada::kv
