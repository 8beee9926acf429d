// The block table of one sequence: its pages in order.
//
// Pages may be held by others too: by a fork of the sequence, or by the tree of prefixes. Such a
// page is read by all and written by none: before positions are written, make_writable() gives the
// sequence copies of its own.
// Threads: one thread; slab() of distinct positions from several.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cicada/base/check.h"
#include "cicada/base/result.h"
#include "cicada/kv/page_pool.h"

namespace cicada::kv {

// Grows as positions are written; gives its pages back when destroyed. Lifetime: borrows the pool.
class Sequence {
 public:
  explicit Sequence(PagePool& pool) : pool_(&pool) {}
  Sequence(Sequence&& other) noexcept;
  Sequence& operator=(Sequence&&) = delete;
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;
  ~Sequence() { truncate(0); }

  // Growing up to `num_tokens` will allocate no memory besides pages.
  void expect(std::size_t num_tokens);
  // Makes room for positions [0, num_tokens). Errors: kOutOfCapacity; pages got so far stay.
  Result<void> reserve(std::size_t num_tokens);
  // Gives back the pages that hold only positions from `num_tokens` on.
  void truncate(std::size_t num_tokens);

  // Becomes one more holder of pages, which come behind those that it has.
  void share(std::span<const PageId> pages);
  // A sequence with the same positions in the same pages.
  Sequence fork() const;
  // Pages of positions [begin, end), as far as there are any, get no other holder: where there is
  // one, a copy takes the page's place. Errors: kOutOfCapacity; the pages that were not copied stay
  // as they were.
  Result<void> make_writable(std::size_t begin, std::size_t end);

  const KvLayout& layout() const { return pool_->layout(); }
  std::size_t capacity_tokens() const { return pages_.size() * layout().page_tokens(); }
  std::span<const PageId> pages() const { return pages_; }
  // Page memory in order; valid until the table changes.
  std::byte* const* page_memory() const { return memory_.data(); }
  // Slab `index` of a head of layout(), to write: nobody else holds its page.
  std::byte* slab(const kernels::CachedHead& head, std::size_t index) const {
    const std::size_t page = index / head.slabs_in_page;
    CICADA_DCHECK(pool_->num_holders(pages_[page]) == 1, "a page that is written has one holder");
    return memory_[page] + head.offset_bytes + index % head.slabs_in_page * head.slab_bytes();
  }
  // The page of a position, to write.
  std::byte* page_of(std::size_t position) const {
    const std::size_t page = position / layout().page_tokens();
    CICADA_DCHECK(pool_->num_holders(pages_[page]) == 1, "a page that is written has one holder");
    return memory_[page];
  }

 private:
  void append(PageId id);

  PagePool* pool_;
  std::vector<PageId> pages_;
  std::vector<std::byte*> memory_;
};

}  // namespace cicada::kv
