// Counting costs no memory: allocations are counted while a server's numbers are set. A program of
// its own, so that the count disturbs no other test.
#include <gtest/gtest.h>

#include <vector>

#include "cicada/metrics/server_metrics.h"
#include "cicada/platform/count_allocations_for_test.h"

namespace cicada::metrics {
namespace {

using platform::allocations;

TEST(Metrics, AllocateNothing) {
  if (!platform::kCountsAllocations) GTEST_SKIP() << "a sanitizer owns the allocator";
  Registry registry;
  ServerMetrics metrics(registry, {.model_name = "m", .max_context_tokens = 8192});
  const std::size_t before = allocations.load();
  for (int i = 0; i < 1000; ++i) {
    metrics.generation_tokens.add();
    metrics.inter_token_latency_seconds.observe(0.01 * i);
    metrics.kv_cache_usage.set(0.5);
    metrics.count_prompt(100, 50);
    metrics.count_finished({.e2e_seconds = 1.5, .generation_tokens = 7});
  }
  EXPECT_EQ(allocations.load() - before, 0U);
}

TEST(Counter, CountsAllocations) {
  if (!platform::kCountsAllocations) GTEST_SKIP() << "a sanitizer owns the allocator";
  const std::size_t before = allocations.load();
  const std::vector<int> probe(1000);
  ASSERT_NE(probe.data(), nullptr);
  EXPECT_GT(allocations.load(), before);
}

}  // namespace
}  // namespace cicada::metrics
