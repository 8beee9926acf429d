// The pool of KV pages: keys and values of some consecutive positions of one sequence, for every
// layer and KV head (layout.h).
//
// Pages are reserved as address space at once and touched only when used.
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

class PagePool {
 public:
  // Errors: kOutOfMemory.
  static Result<PagePool> create(KvLayout layout, std::size_t num_pages);

  const KvLayout& layout() const { return layout_; }
  std::size_t num_pages() const { return held_.size(); }
  std::size_t num_free() const { return free_.size(); }

  // Errors: kOutOfCapacity when every page is held.
  Result<PageId> allocate();
  void release(PageId id);

  std::byte* page(PageId id) {
    return memory_.data() + static_cast<std::size_t>(id.value) * layout_.page_bytes();
  }

  // Broken invariants stop the process: free + held = total.
  void check_conservation() const;

 private:
  PagePool(KvLayout layout, tensor::Buffer memory, std::size_t num_pages);

  KvLayout layout_;
  tensor::Buffer memory_;
  std::vector<PageId> free_;
  std::vector<bool> held_;
};

// One sequence's pages, in order. Grows as positions are written; gives its pages back when
// destroyed. Lifetime: borrows the pool.
class Sequence {
 public:
  explicit Sequence(PagePool& pool) : pool_(&pool) {}
  Sequence(Sequence&& other) noexcept;
  Sequence& operator=(Sequence&&) = delete;
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;
  ~Sequence() { truncate(0); }

  // Makes room for positions [0, num_tokens). Errors: kOutOfCapacity; pages got so far stay.
  Result<void> reserve(std::size_t num_tokens);
  // Gives back the pages that hold only positions from `num_tokens` on.
  void truncate(std::size_t num_tokens);

  const KvLayout& layout() const { return pool_->layout(); }
  std::size_t capacity_tokens() const { return pages_.size() * layout().page_tokens(); }
  // Page memory in order; valid until the next reserve() or truncate().
  std::byte* const* page_memory() const { return memory_.data(); }
  // Slab `index` of a head of layout(), to write.
  std::byte* slab(const kernels::CachedHead& head, std::size_t index) const {
    return memory_[index / head.slabs_in_page] + head.offset_bytes +
           index % head.slabs_in_page * head.slab_bytes();
  }

 private:
  PagePool* pool_;
  std::vector<PageId> pages_;
  std::vector<std::byte*> memory_;
};

}  // namespace cicada::kv
