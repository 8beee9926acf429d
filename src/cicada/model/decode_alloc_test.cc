// Decoding allocates nothing: operator new is counted while tokens are decoded. Its own program, so
// that the count disturbs no other test.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "cicada/model/test_model.h"

namespace {

std::atomic<std::size_t> allocations{0};

}  // namespace

#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // GCC sees only half of the pair
void* operator new(std::size_t size) {
  ++allocations;
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace cicada::model {
namespace {

TEST(Decode, AllocatesNothing) {
  platform::ThreadPool pool(2);
  const TestModel subject{.architecture = "gemma3", .num_layers = 7, .window = 20};
  const auto model = load_test_model(test_file(subject), pool, kernels::runnable_levels().back());
  auto executor = Executor::create(*model, pool, {.max_rows = 64, .max_context = 700});
  auto pages = kv::PagePool::create(model->kv_shape(), 11);
  kv::Sequence sequence(*pages);
  ASSERT_TRUE(sequence.reserve(700).has_value());
  kv::Sequence* const sequences[] = {&sequence};
  std::vector<float> logits(kTestVocab);
  const auto decode = [&](std::int64_t position) {
    const Row row{.token = TokenId(static_cast<std::int32_t>(position % kTestVocab)),
                  .position = position,
                  .wants_logits = true};
    return (*executor)->run({&row, 1}, sequences, logits).has_value();
  };
  ASSERT_TRUE(decode(0));
  const std::size_t before = allocations.load();
  bool is_good = true;
  for (std::int64_t position = 1; position < 600; ++position) is_good &= decode(position);
  EXPECT_EQ(allocations.load() - before, 0U);
  EXPECT_TRUE(is_good);
  // The counter counts: an allocation that the compiler may not drop.
  const std::size_t idle = allocations.load();
  std::vector<int> probe(1000);
  ASSERT_NE(probe.data(), nullptr);
  EXPECT_GT(allocations.load(), idle);
}

}  // namespace
}  // namespace cicada::model
