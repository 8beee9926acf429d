#include "cicada/kv/page_pool.h"

#include <gtest/gtest.h>

namespace cicada::kv {
namespace {

KvLayout layout(std::size_t page_tokens = kPageTokens) {
  return {
      {.num_kv_heads = 3, .head_dim = 16, .value_dim = 8, .layers = std::vector<LayerFormat>(2)},
      page_tokens};
}

TEST(PagePool, ReleaseReturnsPagesToTheFreeList) {
  auto pool = PagePool::create(layout(), 4);
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
  auto pool = PagePool::create(layout(), 1);
  Sequence sequence(*pool);
  const auto result = sequence.reserve(kPageTokens + 1);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code(), Code::kOutOfCapacity);
  EXPECT_EQ(sequence.capacity_tokens(), kPageTokens);
}

}  // namespace
}  // namespace cicada::kv
