// What a page of the cache holds, and where.
//
// A page is `page_tokens` consecutive positions of one sequence, for every layer and KV head:
// [layer][kv head][slab of 16 positions], slabs as in kernels/attention/cache.h. Layers may hold
// keys and values in different widths. After them, where the policy wants it, the bounds of each
// head's keys: [layer][kv head].
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "cicada/kernels/attention/cache.h"

namespace cicada::kv {

inline constexpr std::size_t kPageTokens = 64;  // by default; 16 and 32 are possible

struct LayerFormat {
  kernels::CacheType keys = kernels::CacheType::kF16;
  kernels::CacheType values = kernels::CacheType::kF16;
  bool operator==(const LayerFormat&) const = default;
};

struct KvShape {
  std::size_t num_kv_heads = 0;
  std::size_t head_dim = 0;
  std::size_t value_dim = 0;
  std::vector<LayerFormat> layers;
  bool has_bounds = false;  // of keys, for a policy that chooses pages by them
};

class KvLayout {
 public:
  // `page_tokens` is 16, 32 or 64.
  KvLayout(KvShape shape, std::size_t page_tokens);

  const KvShape& shape() const { return shape_; }
  std::size_t page_tokens() const { return page_tokens_; }
  std::size_t page_bytes() const { return page_bytes_; }
  // That hold so many tokens.
  std::size_t pages_of(std::size_t tokens) const {
    return (tokens + page_tokens_ - 1) / page_tokens_;
  }
  std::size_t bytes_per_token() const { return page_bytes_ / page_tokens_; }

  // One head of one layer; `pages` is set by who has a sequence.
  kernels::CachedHead head(std::size_t layer, std::size_t kv_head) const;

 private:
  KvShape shape_;
  std::size_t page_tokens_;
  std::size_t page_bytes_ = 0;
  std::size_t bounds_offset_ = 0;
  std::vector<std::size_t> layer_offset_;  // [layers]
};

}  // namespace cicada::kv
