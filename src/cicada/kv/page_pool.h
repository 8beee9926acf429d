// The pool of KV pages. A page holds the keys and values of 64 consecutive positions of one
// sequence, for every layer and KV head, float16:
//
//   [layer][kv head] keys   4 sub-tiles [head_dim][16]
//   [layer][kv head] values [64][value_dim]
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
#include "cicada/tensor/buffer.h"

namespace cicada::kv {

using PageId = Id<struct PageIdTag>;

inline constexpr std::size_t kPageTokens = 64;

struct KvShape {
  std::size_t num_layers = 0;
  std::size_t num_kv_heads = 0;
  std::size_t head_dim = 0;
  std::size_t value_dim = 0;

  std::size_t key_tile_bytes() const { return kPageTokens * head_dim * 2; }
  std::size_t value_tile_bytes() const { return kPageTokens * value_dim * 2; }
  std::size_t page_bytes() const {
    return num_layers * num_kv_heads * (key_tile_bytes() + value_tile_bytes());
  }
  std::size_t bytes_per_token() const { return page_bytes() / kPageTokens; }
  // Offsets inside a page.
  std::size_t key_offset(std::size_t layer, std::size_t head) const {
    return (layer * num_kv_heads + head) * (key_tile_bytes() + value_tile_bytes());
  }
  std::size_t value_offset(std::size_t layer, std::size_t head) const {
    return key_offset(layer, head) + key_tile_bytes();
  }
};

class PagePool {
 public:
  // Errors: kOutOfMemory.
  static Result<PagePool> create(const KvShape& shape, std::size_t num_pages);

  const KvShape& shape() const { return shape_; }
  std::size_t num_pages() const { return held_.size(); }
  std::size_t num_free() const { return free_.size(); }

  // Errors: kOutOfCapacity when every page is held.
  Result<PageId> allocate();
  void release(PageId id);

  std::byte* page(PageId id) {
    return memory_.data() + static_cast<std::size_t>(id.value) * shape_.page_bytes();
  }

  // Broken invariants stop the process: free + held = total.
  void check_conservation() const;

 private:
  PagePool(const KvShape& shape, tensor::Buffer memory, std::size_t num_pages);

  KvShape shape_;
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

  std::size_t capacity_tokens() const { return pages_.size() * kPageTokens; }
  // Page memory by tile index; valid until the next reserve() or truncate().
  std::byte* const* tiles() const { return tiles_.data(); }

 private:
  PagePool* pool_;
  std::vector<PageId> pages_;
  std::vector<std::byte*> tiles_;
};

}  // namespace cicada::kv
