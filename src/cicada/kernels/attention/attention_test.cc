#include "cicada/kernels/attention/attention.h"

#include <algorithm>
#include <cmath>

#include "cicada/kernels/attention/cache_for_test.h"
#include "cicada/kernels/test_support.h"
#include "cicada/tensor/buffer.h"

namespace cicada::kernels {
namespace {

// How a cache is held.
struct Held {
  CacheType keys = CacheType::kF16;
  CacheType values = CacheType::kF16;
  std::size_t page_tokens = 64;
};

// Keys and values of one KV head in pages, and what they stand for. Slots that hold no key have
// what an earlier user of the page left.
struct Cache {
  Cache(const Held& held, std::size_t head_dim, std::size_t value_dim, std::size_t length,
        std::uint32_t seed, float rest = 0.0F) {
    head = {.slabs_in_page = held.page_tokens / kSlabTokens,
            .head_dim = head_dim,
            .value_dim = value_dim,
            .key_type = held.keys,
            .value_type = held.values};
    const std::size_t num_pages = (length + held.page_tokens - 1) / held.page_tokens;
    const std::size_t page_bytes = head.slabs_in_page * head.slab_bytes();
    memory.resize(num_pages * page_bytes);
    for (std::size_t p = 0; p < num_pages; ++p) pages.push_back(memory.data() + p * page_bytes);
    head.pages = pages.data();
    for (std::size_t j = 0; j < num_pages * held.page_tokens; ++j) fill(j, rest);
    const std::vector<float> k = random_floats(length * head_dim, seed);
    const std::vector<float> v = random_floats(length * value_dim, seed + 1);
    for (std::size_t j = 0; j < length; ++j) {
      put(j, &k[j * head_dim], &v[j * value_dim]);
      const std::byte* slab = at(j);
      const auto key = cached_key(held.keys, slab, head_dim, j % kSlabTokens);
      const auto value =
          cached_value(held.values, slab + head.key_bytes(), value_dim, j % kSlabTokens);
      keys.insert(keys.end(), key.begin(), key.end());
      values.insert(values.end(), value.begin(), value.end());
    }
  }

  std::byte* at(std::size_t position) {
    const auto* slab = head.slab(position / kSlabTokens, head.slab_bytes());
    return memory.data() + (slab - memory.data());
  }
  void put(std::size_t position, const float* key, const float* value) {
    const AttentionKernels& kernels = attention_kernels(platform::IsaLevel::kScalar);
    kernels.store_key(head.key_type, key, head.head_dim, position % kSlabTokens, at(position));
    kernels.store_value(head.value_type, value, head.value_dim, position % kSlabTokens,
                        at(position) + head.key_bytes());
  }
  // Puts the same number into a whole key and value.
  void fill(std::size_t position, float x) {
    const std::vector<float> row(std::max(head.head_dim, head.value_dim), x);
    put(position, row.data(), row.data());
  }

  std::vector<float> keys;    // [length, head_dim]
  std::vector<float> values;  // [length, value_dim]
  std::vector<std::byte> memory;
  std::vector<const std::byte*> pages;
  CachedHead head;
};

struct Query {
  std::int64_t position = 0;
  std::int64_t first_key = 0;
};

// All queries against the cache: splits in order, merged, finished. Shapes: q [n, head_dim].
std::vector<float> attend(platform::IsaLevel level, const Cache& cache, std::span<const float> q,
                          std::span<const Query> queries, const DistanceBias& bias) {
  const AttentionKernels& kernels = attention_kernels(level);
  const std::size_t hd = cache.head.head_dim;
  const std::size_t vd = cache.head.value_dim;
  const std::size_t width = (vd + 15) / 16 * 16;
  const std::size_t n = queries.size();
  std::vector<float> out(n * width);
  std::vector<float> stats(n * 2);
  std::vector<float> total(n * width, 0.0F);
  std::vector<float> total_stats(n * 2, 0.0F);
  tensor::Buffer scratch =
      *tensor::Buffer::create(attention_scratch_floats(hd, vd, n) * sizeof(float));
  std::vector<AttentionRow> rows;
  std::int64_t last = 0;
  std::int64_t first = queries[0].first_key;
  for (std::size_t i = 0; i < n; ++i) {
    rows.push_back({.q = &q[i * hd],
                    .position = queries[i].position,
                    .first_key = queries[i].first_key,
                    .bias = bias,
                    .out = &out[i * width],
                    .stats = &stats[i * 2]});
    total_stats[2 * i] = kNoScore;
    last = std::max(last, queries[i].position);
    first = std::min(first, queries[i].first_key);
  }
  constexpr auto kSplit = static_cast<std::int64_t>(kSplitKeys);
  for (std::int64_t split = first / kSplit; split <= last / kSplit; ++split) {
    kernels.attend({.cache = cache.head,
                    .key_begin = split * kSplit,
                    .key_end = std::min((split + 1) * kSplit, last + 1),
                    .rows = rows.data(),
                    .num_rows = n,
                    .scratch = scratch.as<float>().data()});
    for (std::size_t i = 0; i < n; ++i) {
      kernels.merge(&out[i * width], &stats[i * 2], vd, &total[i * width], &total_stats[i * 2]);
    }
  }
  std::vector<float> y(n * vd);
  for (std::size_t i = 0; i < n; ++i) {
    kernels.finish(&total[i * width], &total_stats[i * 2], vd, &y[i * vd]);
  }
  return y;
}

// Softmax attention in double; `largest` gets the largest value a row may weigh.
std::vector<double> reference(const Cache& cache, std::span<const float> q, const Query& query,
                              const DistanceBias& bias, double& largest, double& score_size) {
  const std::size_t hd = cache.head.head_dim;
  const std::size_t vd = cache.head.value_dim;
  std::vector<double> scores;
  largest = 0.0;
  score_size = 0.0;
  double top = -INFINITY;
  for (std::int64_t j = query.first_key; j <= query.position; ++j) {
    double s = 0.0;
    double size = 0.0;
    for (std::size_t d = 0; d < hd; ++d) {
      const double term = static_cast<double>(q[d]) *
                          static_cast<double>(cache.keys[static_cast<std::size_t>(j) * hd + d]);
      s += term;
      size += std::fabs(term);
    }
    if (bias.reversed != nullptr) {
      const std::int64_t distance = std::min(query.position - j, bias.limit);
      s += static_cast<double>(bias.reversed[bias.limit - distance]);
    }
    scores.push_back(s);
    top = std::max(top, s);
    score_size = std::max(score_size, size + std::fabs(s));
  }
  double sum = 0.0;
  std::vector<double> y(vd, 0.0);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double weight = std::exp2(scores[i] - top);
    sum += weight;
    for (std::size_t d = 0; d < vd; ++d) {
      const double value = static_cast<double>(
          cache.values[(static_cast<std::size_t>(query.first_key) + i) * vd + d]);
      largest = std::max(largest, std::fabs(value));
      y[d] += weight * value;
    }
  }
  for (double& value : y) value /= sum;
  return y;
}

double largest_size(std::span<const float> x) {
  double largest = 0.0;
  for (const float v : x) largest = std::max(largest, std::fabs(static_cast<double>(v)));
  return largest;
}

// By how much of the largest value the integers may move a result: a query's element is
// off by half a step, which moves scores and so weights by that share, in the sum and in the mean;
// and each of a tile's 64 scaled weights is off by half a step of the largest.
double packed_error(const Cache& cache, std::span<const float> q, double keys) {
  constexpr double kHalfQueryStep = 0.5 / 127.0;
  constexpr double kHalfWeightStep = 0.5 / (127.0 * 128.0);
  double error = 0.0;
  if (cache.head.key_type != CacheType::kF16) {
    error += 2.0 * static_cast<double>(q.size()) * largest_size(q) * largest_size(cache.keys) *
             kHalfQueryStep;
  }
  if (cache.head.value_type != CacheType::kF16) {
    error += 64.0 * std::ceil(keys / 64.0 + 1.0) * kHalfWeightStep;
  }
  return error;
}

struct Shape {
  std::size_t head_dim;
  std::size_t value_dim;
  std::size_t length;
  std::int64_t window;  // 0: none
  bool has_bias;
  Held held = {};
};

class Attention : public testing::TestWithParam<Shape> {
 protected:
  void SetUp() override {
    table_ = random_floats(16 + 41 + 16, 77);
    std::fill_n(table_.begin(), 16, table_[16]);
    if (GetParam().has_bias) bias_ = {.reversed = table_.data() + 16, .limit = 40};
  }

  Query query(std::int64_t position) const {
    const std::int64_t window = GetParam().window;
    return {.position = position,
            .first_key = window == 0 ? 0 : std::max<std::int64_t>(0, position - window + 1)};
  }

  std::vector<float> table_;
  DistanceBias bias_;
};

TEST_P(Attention, EqualsSoftmaxInDouble) {
  const Shape s = GetParam();
  const Cache cache(s.held, s.head_dim, s.value_dim, s.length, 100);
  const auto last = static_cast<std::int64_t>(s.length) - 1;
  std::vector<Query> queries;
  for (const std::int64_t back : {40, 17, 3, 1, 0}) {
    if (last - back >= 0) queries.push_back(query(last - back));
  }
  const float scale = 1.0F / std::sqrt(static_cast<float>(s.head_dim));
  const auto q = random_floats(queries.size() * s.head_dim, 101, scale);
  for (const platform::IsaLevel level : runnable_levels()) {
    const std::vector<float> y = attend(level, cache, q, queries, bias_);
    for (std::size_t i = 0; i < queries.size(); ++i) {
      double largest = 0.0;
      double score_size = 0.0;
      const auto expected = reference(cache, std::span(q).subspan(i * s.head_dim, s.head_dim),
                                      queries[i], bias_, largest, score_size);
      // A score is off by at most (head_dim + 2) eps of its terms' sizes, which moves a weight by
      // that share, both in the sum and in the mean (hence twice); 2^x by 2 units, and each of the
      // keys adds one rounding to sum and mean.
      const double keys = static_cast<double>(queries[i].position - queries[i].first_key + 1);
      const double bound =
          0x1p-24 * largest *
              (2.0 * static_cast<double>(s.head_dim + 2) * score_size + 2.0 * keys + 16.0) +
          largest * packed_error(cache, std::span(q).subspan(i * s.head_dim, s.head_dim), keys);
      for (std::size_t d = 0; d < s.value_dim; ++d) {
        ASSERT_NEAR(static_cast<double>(y[i * s.value_dim + d]), expected[d], bound)
            << platform::name(level) << " query " << i << " element " << d;
      }
    }
  }
}

TEST_P(Attention, BitsDependOnNeitherLevelNorNeighbours) {
  const Shape s = GetParam();
  const Cache cache(s.held, s.head_dim, s.value_dim, s.length, 200);
  const std::size_t count = std::min<std::size_t>(s.length, 23);
  std::vector<Query> queries;
  for (std::size_t i = 0; i < count; ++i) {
    queries.push_back(query(static_cast<std::int64_t>(s.length - count + i)));
  }
  const auto q = random_floats(count * s.head_dim, 201, 0.3F);
  const std::vector<float> expected = attend(platform::IsaLevel::kScalar, cache, q, queries, bias_);
  for (const platform::IsaLevel level : runnable_levels()) {
    for (const std::size_t block : {1U, 3U, 23U}) {
      for (std::size_t at = 0; at < count; at += block) {
        const std::size_t n = std::min(block, count - at);
        const auto y = attend(level, cache, std::span(q).subspan(at * s.head_dim, n * s.head_dim),
                              std::span(queries).subspan(at, n), bias_);
        ASSERT_EQ(std::memcmp(y.data(), &expected[at * s.value_dim], y.size() * sizeof(float)), 0)
            << platform::name(level) << " block of " << block << " at " << at;
      }
    }
  }
}

// What lies after the last key, or before the first of a window, weighs exactly nothing, and pages
// that no query sees are not touched.
TEST_P(Attention, BitsDependOnNothingOutsideTheRowsKeys) {
  const Shape s = GetParam();
  const auto last = static_cast<std::int64_t>(s.length) - 1;
  const std::vector<Query> queries = {query(last)};
  const auto q = random_floats(s.head_dim, 301, 0.3F);
  constexpr float kLargest = 65504.0F;
  const Cache clean(s.held, s.head_dim, s.value_dim, s.length, 300);
  Cache used(s.held, s.head_dim, s.value_dim, s.length, 300, kLargest);
  Cache used_too(s.held, s.head_dim, s.value_dim, s.length, 300, -kLargest);
  for (Cache* cache : {&used, &used_too}) {
    for (std::int64_t j = 0; j < queries[0].first_key; ++j) {
      cache->fill(static_cast<std::size_t>(j), kLargest);
    }
    const auto first_page = static_cast<std::size_t>(queries[0].first_key) / s.held.page_tokens;
    std::fill_n(cache->pages.begin(), first_page, nullptr);
  }
  for (const platform::IsaLevel level : runnable_levels()) {
    const std::vector<float> expected = attend(level, clean, q, queries, bias_);
    EXPECT_EQ(attend(level, used, q, queries, bias_), expected) << platform::name(level);
    EXPECT_EQ(attend(level, used_too, q, queries, bias_), expected) << platform::name(level);
  }
}

constexpr Held kQ8 = {CacheType::kQ8, CacheType::kQ8};
constexpr Held kQ6 = {CacheType::kQ6, CacheType::kQ6};
constexpr Held kQ4 = {CacheType::kQ4, CacheType::kQ4};
constexpr Held kSmallPages = {CacheType::kF16, CacheType::kF16, 16};
constexpr Held kMixed = {CacheType::kQ8, CacheType::kQ4, 32};

INSTANTIATE_TEST_SUITE_P(
    attention, Attention,
    testing::Values(Shape{8, 8, 1, 0, false}, Shape{8, 12, 65, 0, true},
                    Shape{64, 64, 63, 0, false}, Shape{64, 64, 64, 0, true},
                    Shape{64, 64, 65, 0, false}, Shape{12, 12, 100, 0, true},
                    Shape{12, 64, 1100, 0, false}, Shape{128, 64, 512, 0, false},
                    Shape{128, 64, 513, 0, false}, Shape{128, 128, 65, 1, true},
                    Shape{256, 256, 130, 50, false}, Shape{256, 12, 513, 64, true},
                    Shape{16, 12, 1100, 0, true}, Shape{64, 64, 1100, 512, false},
                    Shape{64, 64, 1100, 513, true}, Shape{64, 64, 65, 0, false, kSmallPages},
                    Shape{64, 64, 1100, 513, true, kSmallPages}, Shape{8, 8, 1, 0, false, kQ8},
                    Shape{64, 64, 65, 0, false, kQ8}, Shape{12, 40, 1100, 0, true, kQ8},
                    Shape{128, 128, 600, 70, true, kQ8}, Shape{8, 12, 65, 0, true, kQ6},
                    Shape{64, 64, 1100, 513, true, kQ6}, Shape{80, 96, 130, 0, false, kQ6},
                    Shape{256, 256, 130, 50, false, kQ6}, Shape{64, 64, 513, 0, false, kQ4},
                    Shape{16, 32, 100, 0, true, kQ4}, Shape{64, 64, 700, 33, true, kMixed},
                    Shape{96, 12, 100, 0, false, {CacheType::kF16, CacheType::kQ6, 16}},
                    Shape{24, 64, 100, 20, false, {CacheType::kQ4, CacheType::kF16, 32}}),
    [](const auto& p) {
      const Held& held = p.param.held;
      return "h" + std::to_string(p.param.head_dim) + "_v" + std::to_string(p.param.value_dim) +
             "_n" + std::to_string(p.param.length) + "_w" + std::to_string(p.param.window) +
             (p.param.has_bias ? "_bias_" : "_") + std::string(cache_type_name(held.keys)) +
             std::string(cache_type_name(held.values)) + "_p" + std::to_string(held.page_tokens);
    });

}  // namespace
}  // namespace cicada::kernels
