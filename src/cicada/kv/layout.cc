#include "cicada/kv/layout.h"

#include <utility>

#include "cicada/base/check.h"

namespace cicada::kv {

using kernels::kSlabTokens;

KvLayout::KvLayout(KvShape shape, std::size_t page_tokens)
    : shape_(std::move(shape)), page_tokens_(page_tokens) {
  CICADA_CHECK(page_tokens == 16 || page_tokens == 32 || page_tokens == 64, "a page size");
  for (std::size_t layer = 0; layer < shape_.layers.size(); ++layer) {
    layer_offset_.push_back(page_bytes_);
    page_bytes_ += shape_.num_kv_heads * (page_tokens / kSlabTokens) * head(layer, 0).slab_bytes();
  }
  if (!shape_.has_bounds) return;
  bounds_offset_ = page_bytes_;
  page_bytes_ +=
      shape_.layers.size() * shape_.num_kv_heads * kernels::key_bounds_bytes(shape_.head_dim);
}

kernels::CachedHead KvLayout::head(std::size_t layer, std::size_t kv_head) const {
  const LayerFormat& format = shape_.layers[layer];
  kernels::CachedHead head{.slabs_in_page = page_tokens_ / kSlabTokens,
                           .head_dim = shape_.head_dim,
                           .value_dim = shape_.value_dim,
                           .key_type = format.keys,
                           .value_type = format.values};
  head.offset_bytes = layer_offset_[layer] + kv_head * head.slabs_in_page * head.slab_bytes();
  if (shape_.has_bounds) {
    head.bounds_offset = bounds_offset_ + (layer * shape_.num_kv_heads + kv_head) *
                                              kernels::key_bounds_bytes(shape_.head_dim);
  }
  return head;
}

}  // namespace cicada::kv
