// The pool of KV pages: keys and values of some consecutive positions of a sequence, for every
// layer and KV head (layout.h).
//
// A page may have several holders: sequences with a common beginning, and the tree that remembers
// it (prefix_tree.h). It is free again when the last one has released it. Pages are reserved as
// address space at once and touched only when used.
// Invariant: free + held = total (checked by check_conservation()).
// Threads: one thread (the step loop); page memory may be written by workers at distinct places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cicada/base/ids.h"
#include "cicada/base/result.h"
#include "cicada/kv/layout.h"
#include "cicada/tensor/buffer.h"

namespace cicada::kv {

using PageId = Id<struct PageIdTag>;

// What a page may have as its number of tokens. Errors: kInvalidArgument with what is allowed.
Result<void> check_page_tokens(std::size_t page_tokens);

// Holds pages that it can do without; a pool that has none left asks for one back.
class PageReclaimer {
 public:
  virtual ~PageReclaimer() = default;
  // Makes at least one page free, or returns false when it can spare none. Allocates no memory.
  virtual bool reclaim() = 0;
};

class PagePool {
 public:
  // Errors: kOutOfMemory.
  static Result<PagePool> create(KvLayout layout, std::size_t num_pages);

  const KvLayout& layout() const { return layout_; }
  std::size_t num_pages() const { return holders_.size(); }
  std::size_t num_free() const { return free_.size(); }
  // Pages that a sequence could have: free ones, and those that nobody holds but the tree.
  std::size_t num_available() const { return free_.size() + num_idle_; }

  // Pages with lower ids have been allocated before, or not at all: memory beyond is untouched.
  std::size_t num_ever_used() const { return ever_used_; }

  // A page with one holder. Errors: kOutOfCapacity when every page is held and nobody can spare
  // one.
  Result<PageId> allocate();
  // One more holder of a held page.
  void retain(PageId id);
  void release(PageId id);
  std::uint32_t num_holders(PageId id) const {
    return holders_[static_cast<std::size_t>(id.value)];
  }

  // Says that one of a held page's holders gives it up when others need it (PageReclaimer), or no
  // longer is one.
  void set_spare(PageId id, bool is_spare);

  // Asked when no page is free; nullptr: nobody. It must outlive the pool or take itself off.
  void set_reclaimer(PageReclaimer* reclaimer) { reclaimer_ = reclaimer; }

  std::byte* page(PageId id) {
    return memory_.data() + static_cast<std::size_t>(id.value) * layout_.page_bytes();
  }

  // Broken invariants stop the process: free + held = total, and nothing free is held.
  void check_conservation() const;

 private:
  PagePool(KvLayout layout, tensor::Buffer memory, std::size_t num_pages);

  KvLayout layout_;
  tensor::Buffer memory_;
  std::vector<PageId> free_;
  std::vector<std::uint32_t> holders_;  // [pages]; 0: free
  std::vector<bool> is_spare_;          // [pages]
  std::size_t ever_used_ = 0;
  std::size_t num_idle_ = 0;  // spare pages with one holder
  PageReclaimer* reclaimer_ = nullptr;
};

}  // namespace cicada::kv
