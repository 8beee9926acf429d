// Decoding allocates nothing: allocations are counted while batches run. A program of its own, so
// that the count disturbs no other test.
#include "cicada/model/test_model.h"
#include "cicada/platform/count_allocations_for_test.h"

namespace cicada::model {
namespace {

using platform::allocations;

class Decode : public testing::TestWithParam<TestModel> {
 protected:
  void SetUp() override {
    if (!platform::kCountsAllocations) GTEST_SKIP() << "a sanitizer owns the allocator";
  }
};

TEST(Counter, CountsWhatNewAndMallocTake) {
  if (!platform::kCountsAllocations) GTEST_SKIP() << "a sanitizer owns the allocator";
  const std::size_t before = allocations.load();
  std::vector<int> probe(1000);
  ASSERT_NE(probe.data(), nullptr);
  EXPECT_GT(allocations.load(), before);
}

// A prompt in chunks, one sequence alone, then three of different lengths in one batch, across the
// borders of pages (64) and of key splits (512).
TEST_P(Decode, AllocatesNothing) {
  constexpr std::size_t kContext = 700;
  constexpr std::size_t kSequences = 3;
  constexpr std::size_t kPages = (kContext + kv::kPageTokens - 1) / kv::kPageTokens;
  platform::ThreadPool pool(2);
  const auto model = load_test_model(test_file(GetParam()), pool, kernels::best_level());
  auto executor = Executor::create(
      *model, pool, {.max_rows = 64, .max_sequences = kSequences, .max_context = kContext});
  auto pages = kv::PagePool::create(model->kv_layout(), kSequences * kPages);
  std::vector<std::unique_ptr<kv::Sequence>> owned;
  std::vector<kv::Sequence*> sequences;
  for (std::size_t i = 0; i < kSequences; ++i) {
    owned.push_back(std::make_unique<kv::Sequence>(*pages));
    ASSERT_TRUE(owned.back()->reserve(kContext).has_value());
    sequences.push_back(owned.back().get());
  }
  std::vector<float> logits(kSequences * kTestVocab);
  std::vector<Row> rows(64);
  std::int64_t lengths[kSequences] = {};
  // `count` rows of each of the first `used` sequences, logits of the last row of each.
  const auto run = [&](std::size_t used, std::size_t count) {
    std::size_t at = 0;
    for (std::size_t s = 0; s < used; ++s) {
      for (std::size_t i = 0; i < count; ++i, ++at, ++lengths[s]) {
        rows[at] = {.token = TokenId(static_cast<std::int32_t>(lengths[s] % kTestVocab)),
                    .position = lengths[s],
                    .sequence = static_cast<std::uint32_t>(s),
                    .wants_logits = i + 1 == count};
      }
    }
    return (*executor)
        ->run(std::span(rows).first(at), sequences, std::span(logits).first(used * kTestVocab))
        .has_value();
  };
  ASSERT_TRUE(run(3, 2));  // whatever is made on first use
  const std::size_t before = allocations.load();
  bool is_good = true;
  for (int i = 0; i < 7; ++i) is_good &= run(1, 64);
  for (int i = 0; i < 100; ++i) is_good &= run(1, 1);
  for (int i = 0; i < 100; ++i) is_good &= run(3, 1);
  EXPECT_EQ(allocations.load() - before, 0U);
  EXPECT_TRUE(is_good);
}

INSTANTIATE_TEST_SUITE_P(
    model, Decode,
    testing::Values(TestModel{}, TestModel{.architecture = "gemma3", .num_layers = 7, .window = 20},
                    TestModel{.architecture = "qwen2", .dtype = tensor::DType::kF16},
                    TestModel{.architecture = "cicada-v1", .rel_pos_dim = 16}),
    [](const auto& p) {
      std::string name = p.param.architecture;
      std::erase(name, '-');
      return name;
    });

}  // namespace
}  // namespace cicada::model
