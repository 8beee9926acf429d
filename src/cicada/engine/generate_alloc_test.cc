// A generated token allocates nothing, sampling included.
#include "cicada/engine/generator.h"
#include "cicada/model/test_model.h"
#include "cicada/platform/count_allocations_for_test.h"

namespace cicada::engine {
namespace {

using platform::allocations;

TEST(Generate, AllocatesNothingFromTheFirstTokenOn) {
  if (!platform::kCountsAllocations) GTEST_SKIP() << "a sanitizer owns the allocator";
  platform::ThreadPool pool(2);
  const auto model = model::load_test_model(model::test_file({}), pool, kernels::best_level());
  auto generator = Generator::create(*model, pool, {.context = 400});
  ASSERT_TRUE(generator.has_value());
  const std::vector<TokenId> prompt(20, TokenId(3));
  const SamplerOptions samplers[] = {
      {},
      {.temperature = 1.0F, .seed = 5},
      {.temperature = 0.8F, .top_k = 40, .top_p = 0.9F, .min_p = 0.02F, .seed = 6}};
  for (const SamplerOptions& sampler : samplers) {
    std::size_t first = 0;
    std::size_t last = 0;
    std::size_t tokens = 0;
    const auto result =
        (*generator)->generate(prompt, {.max_tokens = 300, .sampler = sampler}, [&](TokenId) {
          last = allocations.load();
          if (tokens++ == 0) first = last;
          return true;
        });
    ASSERT_TRUE(result.has_value());
    EXPECT_EQ(tokens, 300U);
    EXPECT_EQ(last - first, 0U) << "temperature " << sampler.temperature;
  }
}

// Pages that an answer needs are taken from remembered prefixes meanwhile.
TEST(Generate, AllocatesNothingWhereRememberedPagesAreGivenUp) {
  if (!platform::kCountsAllocations) GTEST_SKIP() << "a sanitizer owns the allocator";
  platform::ThreadPool pool(2);
  const auto model = model::load_test_model(model::test_file({}), pool, kernels::best_level());
  auto generator =
      Generator::create(*model, pool, {.context = 320, .page_tokens = 16, .pool_pages = 21});
  ASSERT_TRUE(generator.has_value());
  const auto ignore = [](TokenId) { return true; };
  const std::vector<TokenId> first(300, TokenId(3));
  ASSERT_TRUE((*generator)->generate(first, {.max_tokens = 1}, ignore).has_value());
  std::size_t before = 0;
  std::size_t last = 0;
  const std::vector<TokenId> second(20, TokenId(4));
  const auto result = (*generator)->generate(second, {.max_tokens = 290}, [&](TokenId) {
    last = allocations.load();
    if (before == 0) before = last;
    return true;
  });
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(last - before, 0U);
  EXPECT_GT((*generator)->prefix_counters().evictions, 10U);
}

}  // namespace
}  // namespace cicada::engine
