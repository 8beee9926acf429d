#include "cicada/kv/layout.h"

#include <gtest/gtest.h>

namespace cicada::kv {
namespace {

using kernels::CacheType;

KvShape shape(std::size_t head_dim, std::size_t value_dim) {
  return {.num_kv_heads = 3,
          .head_dim = head_dim,
          .value_dim = value_dim,
          .layers = {{CacheType::kQ8, CacheType::kQ6},
                     {CacheType::kF16, CacheType::kF16},
                     {CacheType::kQ4, CacheType::kQ8}}};
}

TEST(KvLayout, HeadsTileThePageWithoutGaps) {
  for (const std::size_t page_tokens : {16U, 32U, 64U}) {
    const KvLayout layout(shape(64, 128), page_tokens);
    std::size_t next = 0;
    for (std::size_t layer = 0; layer < 3; ++layer) {
      for (std::size_t head = 0; head < 3; ++head) {
        const kernels::CachedHead cached = layout.head(layer, head);
        EXPECT_EQ(cached.offset_bytes, next);
        next += page_tokens / 16 * cached.slab_bytes();
      }
    }
    EXPECT_EQ(layout.page_bytes(), next);
  }
}

TEST(KvLayout, BoundsComeAfterTheSlabs) {
  KvShape with = shape(40, 128);
  with.has_bounds = true;
  const KvLayout plain(shape(40, 128), 64);
  const KvLayout layout(with, 64);
  std::size_t next = plain.page_bytes();
  for (std::size_t layer = 0; layer < 3; ++layer) {
    for (std::size_t head = 0; head < 3; ++head) {
      EXPECT_EQ(plain.head(layer, head).bounds_offset, 0U);
      EXPECT_EQ(layout.head(layer, head).offset_bytes, plain.head(layer, head).offset_bytes);
      EXPECT_EQ(layout.head(layer, head).bounds_offset, next);
      next += 2 * 48 * 2;  // two float16 an element, 40 filled up to 48
    }
  }
  EXPECT_EQ(layout.page_bytes(), next);
}

TEST(KvLayout, BytesPerTokenCountScales) {
  const auto per_token = [](CacheType type) {
    const KvLayout layout(
        {.num_kv_heads = 1, .head_dim = 64, .value_dim = 64, .layers = {{type, type}}},
        kPageTokens);
    return layout.bytes_per_token();
  };
  EXPECT_EQ(per_token(CacheType::kF16), 256U);
  EXPECT_EQ(per_token(CacheType::kQ8), 128U + 8U);  // 8.5 bits an element
  EXPECT_EQ(per_token(CacheType::kQ6), 96U + 8U);   // 6.5
  EXPECT_EQ(per_token(CacheType::kQ4), 64U + 8U);   // 4.5
}

}  // namespace
}  // namespace cicada::kv
