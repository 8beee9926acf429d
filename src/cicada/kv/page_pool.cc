#include "cicada/kv/page_pool.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "cicada/base/check.h"
#include "cicada/base/checked.h"

namespace cicada::kv {

Result<void> check_page_tokens(std::size_t page_tokens) {
  if (page_tokens == 16 || page_tokens == 32 || page_tokens == 64) return {};
  return fail(Code::kInvalidArgument, "KV pages of {} tokens: 16, 32 and 64 are possible",
              page_tokens);
}

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
    : layout_(std::move(layout)),
      memory_(std::move(memory)),
      holders_(num_pages, 0),
      is_spare_(num_pages, false) {
  free_.reserve(num_pages);
  for (std::size_t i = num_pages; i > 0; --i) {
    free_.emplace_back(static_cast<std::int32_t>(i - 1));
  }
}

Result<PageId> PagePool::allocate() {
  if (free_.empty() && (reclaimer_ == nullptr || !reclaimer_->reclaim())) {
    return fail(Code::kOutOfCapacity, "all {} KV pages of {} tokens are in use", num_pages(),
                layout_.page_tokens());
  }
  CICADA_CHECK(!free_.empty(), "a reclaimed page is free");
  const PageId id = free_.back();
  free_.pop_back();
  const auto index = static_cast<std::size_t>(id.value);
  holders_[index] = 1;
  ever_used_ = std::max(ever_used_, index + 1);
  return id;
}

void PagePool::retain(PageId id) {
  const auto index = static_cast<std::size_t>(id.value);
  CICADA_CHECK(index < holders_.size() && holders_[index] > 0, "a retained page is held");
  if (holders_[index] == 1 && is_spare_[index]) --num_idle_;
  ++holders_[index];
}

void PagePool::release(PageId id) {
  const auto index = static_cast<std::size_t>(id.value);
  CICADA_CHECK(index < holders_.size() && holders_[index] > 0, "a released page is held");
  --holders_[index];
  if (holders_[index] == 1 && is_spare_[index]) ++num_idle_;
  if (holders_[index] == 0) free_.push_back(id);
}

void PagePool::set_spare(PageId id, bool is_spare) {
  const auto index = static_cast<std::size_t>(id.value);
  CICADA_CHECK(index < holders_.size() && holders_[index] > 0, "a spare page is held");
  if (is_spare_[index] == is_spare) return;
  is_spare_[index] = is_spare;
  if (holders_[index] == 1) is_spare ? ++num_idle_ : --num_idle_;
}

void PagePool::check_conservation() const {
  std::size_t held = 0;
  std::size_t idle = 0;
  for (std::size_t i = 0; i < holders_.size(); ++i) {
    if (holders_[i] > 0) ++held;
    if (holders_[i] == 1 && is_spare_[i]) ++idle;
    CICADA_CHECK(holders_[i] > 0 || !is_spare_[i], "a free page is nobody's spare one");
  }
  CICADA_CHECK(idle == num_idle_, "idle pages are counted");
  CICADA_CHECK(held + free_.size() == holders_.size(), "free + held = total");
  std::vector<bool> seen(holders_.size(), false);
  for (const PageId id : free_) {
    const auto index = static_cast<std::size_t>(id.value);
    CICADA_CHECK(holders_[index] == 0, "a free page is held by nobody");
    CICADA_CHECK(!seen[index], "a free page is free once");
    seen[index] = true;
  }
}

}  // namespace cicada::kv
