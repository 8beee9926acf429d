#include "cicada/kv/page_pool.h"

#include <gtest/gtest.h>

namespace cicada::kv {
namespace {

constexpr KvShape kShape = {.num_layers = 2, .num_kv_heads = 3, .head_dim = 16, .value_dim = 8};

TEST(PagePool, ReleaseReturnsPagesToTheFreeList) {
  auto pool = PagePool::create(kShape, 4);
  ASSERT_TRUE(pool.has_value());
  {
    Sequence sequence(*pool);
    ASSERT_TRUE(sequence.reserve(kPageTokens + 1).has_value());
    EXPECT_EQ(pool->num_free(), 2U);
    sequence.truncate(kPageTokens);
    EXPECT_EQ(pool->num_free(), 3U);
    pool->check_conservation();
  }
  EXPECT_EQ(pool->num_free(), 4U);
  pool->check_conservation();
}

TEST(PagePool, DryPoolIsAnErrorNotACrash) {
  auto pool = PagePool::create(kShape, 1);
  Sequence sequence(*pool);
  const auto result = sequence.reserve(kPageTokens + 1);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code(), Code::kOutOfCapacity);
  EXPECT_EQ(sequence.capacity_tokens(), kPageTokens);
}

TEST(KvShape, OffsetsTileThePageWithoutGaps) {
  std::size_t next = 0;
  for (std::size_t layer = 0; layer < kShape.num_layers; ++layer) {
    for (std::size_t head = 0; head < kShape.num_kv_heads; ++head) {
      EXPECT_EQ(kShape.key_offset(layer, head), next);
      EXPECT_EQ(kShape.value_offset(layer, head), next + kShape.key_tile_bytes());
      next += kShape.key_tile_bytes() + kShape.value_tile_bytes();
    }
  }
  EXPECT_EQ(next, kShape.page_bytes());
  EXPECT_EQ(kShape.bytes_per_token(), 2U * 3U * (16U + 8U) * 2U);
}

}  // namespace
}  // namespace cicada::kv
