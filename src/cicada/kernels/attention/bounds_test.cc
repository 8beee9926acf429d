// Bounds of a tile's keys: what they hold, that no score exceeds what they allow, and that rows
// read the tiles that were chosen for them and no other.
#include <algorithm>
#include <cmath>

#include "cicada/kernels/attention/attention.h"
#include "cicada/kernels/attention/cache_for_test.h"
#include "cicada/kernels/test_support.h"
#include "cicada/tensor/buffer.h"

namespace cicada::kernels {
namespace {

constexpr std::size_t kLength = 5 * kKeyTile;

struct Held {
  CacheType type;
  std::size_t dim;
  std::size_t page_tokens;
};

// Keys and values of one head with room for bounds; tile 2 has the largest keys.
struct Cache {
  explicit Cache(const Held& held) {
    head = {.slabs_in_page = held.page_tokens / kSlabTokens,
            .head_dim = held.dim,
            .value_dim = held.dim,
            .key_type = held.type,
            .value_type = held.type};
    head.bounds_offset = head.slabs_in_page * head.slab_bytes();
    page_bytes = head.bounds_offset + key_bounds_bytes(held.dim);
    memory.resize(kLength / held.page_tokens * page_bytes);
    for (std::size_t p = 0; p < memory.size(); p += page_bytes) pages.push_back(&memory[p]);
    head.pages = pages.data();
    const std::vector<float> x = random_floats(2 * kLength * held.dim, 7);
    const AttentionKernels& kernels = attention_kernels(platform::IsaLevel::kScalar);
    for (std::size_t j = 0; j < kLength; ++j) {
      std::vector<float> key(&x[2 * j * held.dim], &x[(2 * j + 1) * held.dim]);
      if (j / kKeyTile == 2)
        std::transform(key.begin(), key.end(), key.begin(), [](float k) { return 3.0F * k; });
      std::byte* slab = at(j);
      kernels.store_key(held.type, key.data(), held.dim, j % kSlabTokens, slab);
      kernels.store_value(held.type, &x[(2 * j + 1) * held.dim], held.dim, j % kSlabTokens,
                          slab + head.key_bytes());
      keys.push_back(cached_key(held.type, slab, held.dim, j % kSlabTokens));
      values.push_back(cached_value(held.type, slab + head.key_bytes(), held.dim, j % kSlabTokens));
    }
  }

  std::byte* at(std::size_t position) {
    return memory.data() + (head.slab(position / kSlabTokens, head.slab_bytes()) - memory.data());
  }
  std::byte* page_of(std::size_t position) {
    return memory.data() + position / (head.slabs_in_page * kSlabTokens) * page_bytes;
  }
  void bound(platform::IsaLevel level) {
    for (std::size_t tile = 0; tile < kLength / kKeyTile; ++tile) {
      attention_kernels(level).bound_keys(head, tile, page_of((tile + 1) * kKeyTile - 1));
    }
  }

  std::vector<std::vector<float>> keys;
  std::vector<std::vector<float>> values;
  std::vector<std::byte> memory;
  std::vector<const std::byte*> pages;
  std::size_t page_bytes = 0;
  CachedHead head;
};

class BoundsTest : public testing::TestWithParam<Held> {};

TEST_P(BoundsTest, AreTheLargestAndTheLeastOfEachElement) {
  Cache cache(GetParam());
  const std::size_t width = (GetParam().dim + 15) / 16 * 16;
  for (const platform::IsaLevel level : runnable_levels()) {
    std::vector<std::byte> others = cache.memory;
    cache.bound(level);
    for (std::size_t tile = 0; tile < kLength / kKeyTile; ++tile) {
      const std::byte* bounds = cache.page_of((tile + 1) * kKeyTile - 1) + cache.head.bounds_offset;
      for (std::size_t d = 0; d < GetParam().dim; ++d) {
        float high = -INFINITY;
        float low = INFINITY;
        for (std::size_t j = tile * kKeyTile; j < (tile + 1) * kKeyTile; ++j) {
          high = std::max(high, cache.keys[j][d]);
          low = std::min(low, cache.keys[j][d]);
        }
        const auto rounded = [](float x) { return tensor::f16_to_f32(tensor::f32_to_f16(x)); };
        EXPECT_EQ(half_at(bounds, d), rounded(high)) << platform::name(level) << " " << d;
        EXPECT_EQ(half_at(bounds, width + d), rounded(low)) << platform::name(level) << " " << d;
      }
    }
    // Nothing but bounds is written.
    for (std::size_t p = 0; p < cache.memory.size(); p += cache.page_bytes) {
      EXPECT_TRUE(std::equal(&others[p], &others[p] + cache.head.bounds_offset, &cache.memory[p]));
    }
  }
}

TEST_P(BoundsTest, AllowWhatTheirKeysScoreAndLittleMoreThanABoxAroundThem) {
  Cache cache(GetParam());
  const std::size_t dim = GetParam().dim;
  std::vector<float> first;
  for (const platform::IsaLevel level : runnable_levels()) {
    cache.bound(level);
    const std::vector<float> q = random_floats(dim, 9);
    // A bias that grows with the distance up to 100.
    std::vector<float> table(16 + 100 + 1 + 16);
    for (std::size_t i = 0; i < table.size(); ++i) {
      table[i] =
          i < 16 ? 5.0F : 0.05F * static_cast<float>(100 - std::min<std::size_t>(i - 16, 100));
    }
    const AttentionRow row{
        .q = q.data(), .position = kLength - 1, .bias = {.reversed = &table[16], .limit = 100}};
    std::vector<float> scores(kLength / kKeyTile, -7.0F);
    attention_kernels(level).score_bounds({.cache = cache.head,
                                           .tile_begin = 1,
                                           .tile_end = 4,
                                           .row = &row,
                                           .scores = scores.data()});
    EXPECT_EQ(scores[0], -7.0F);
    EXPECT_EQ(scores[4], -7.0F);
    for (std::size_t tile = 1; tile < 4; ++tile) {
      double box = 0.0;
      double best = -INFINITY;
      double most_bias = 0.0;
      std::vector<float> high(dim, -INFINITY);
      std::vector<float> low(dim, INFINITY);
      for (std::size_t j = tile * kKeyTile; j < (tile + 1) * kKeyTile; ++j) {
        const double bias = 0.05 * static_cast<double>(std::min<std::size_t>(kLength - 1 - j, 100));
        double score = bias;
        for (std::size_t d = 0; d < dim; ++d) {
          score += static_cast<double>(q[d]) * static_cast<double>(cache.keys[j][d]);
          high[d] = std::max(high[d], cache.keys[j][d]);
          low[d] = std::min(low[d], cache.keys[j][d]);
        }
        most_bias = std::max(most_bias, bias);
        best = std::max(best, score);
      }
      for (std::size_t d = 0; d < dim; ++d) {
        box += static_cast<double>(q[d]) * static_cast<double>(q[d] > 0.0F ? high[d] : low[d]);
      }
      const double slack = 2e-3 * (1.0 + std::fabs(box));  // of float16
      EXPECT_GE(static_cast<double>(scores[tile]), best - slack) << platform::name(level);
      EXPECT_NEAR(static_cast<double>(scores[tile]), box + most_bias, slack)
          << platform::name(level);
    }
    EXPECT_GT(scores[2], scores[1]);
    EXPECT_GT(scores[2], scores[3]);
    if (first.empty()) first = scores;
    EXPECT_EQ(scores, first) << platform::name(level);
  }
}

// Two rows of one call with other tiles each, and one that has none of this split.
TEST_P(BoundsTest, RowsReadTheTilesThatWereChosenForThem) {
  Cache cache(GetParam());
  const std::size_t dim = GetParam().dim;
  const std::size_t width = (dim + 15) / 16 * 16;
  const std::vector<float> q = random_floats(3 * dim, 11, 0.1F);
  constexpr std::uint8_t kTiles[] = {0b10101, 0b00110, 0};
  std::vector<float> first;
  for (const platform::IsaLevel level : runnable_levels()) {
    std::vector<float> out(3 * width);
    std::vector<float> stats(6);
    std::vector<AttentionRow> rows;
    for (std::size_t r = 0; r < 3; ++r) {
      rows.push_back({.q = &q[r * dim],
                      .position = kLength - 1,
                      .tiles = kTiles[r],
                      .out = &out[r * width],
                      .stats = &stats[2 * r]});
    }
    tensor::Buffer scratch =
        *tensor::Buffer::create(attention_scratch_floats(dim, dim, 3) * sizeof(float));
    const auto attend = [&](std::size_t begin, std::size_t count) {
      attention_kernels(level).attend({.cache = cache.head,
                                       .key_end = kLength,
                                       .rows = rows.data() + begin,
                                       .num_rows = count,
                                       .scratch = scratch.as<float>().data()});
    };
    attend(0, 3);
    const std::vector<float> together = out;
    EXPECT_EQ(stats[5], 0.0F) << platform::name(level);
    for (std::size_t r = 0; r < 2; ++r) {
      std::vector<double> expected(dim, 0.0);
      std::vector<double> scores;
      double sum = 0.0;
      double top = -INFINITY;
      for (std::size_t j = 0; j < kLength; ++j) {
        double s = 0.0;
        for (std::size_t d = 0; d < dim; ++d) {
          s += static_cast<double>(q[r * dim + d]) * static_cast<double>(cache.keys[j][d]);
        }
        scores.push_back(rows[r].has_tile_of(static_cast<std::int64_t>(j)) ? s : -INFINITY);
        top = std::max(top, scores.back());
      }
      for (std::size_t j = 0; j < kLength; ++j) {
        const double weight = std::exp2(scores[j] - top);
        sum += weight;
        for (std::size_t d = 0; d < dim; ++d) {
          expected[d] += weight * static_cast<double>(cache.values[j][d]);
        }
      }
      for (std::size_t d = 0; d < dim; ++d) {
        EXPECT_NEAR(static_cast<double>(out[r * width + d]) / static_cast<double>(stats[2 * r + 1]),
                    expected[d] / sum, GetParam().type == CacheType::kF16 ? 1e-5 : 2e-2)
            << platform::name(level) << " row " << r << " element " << d;
      }
      attend(r, 1);
      EXPECT_TRUE(std::equal(&out[r * width], &out[r * width] + width, &together[r * width]))
          << platform::name(level) << ": a row's bits depend on its neighbours";
    }
    if (first.empty()) first = together;
    EXPECT_EQ(together, first) << platform::name(level);
  }
}

INSTANTIATE_TEST_SUITE_P(held, BoundsTest,
                         testing::Values(Held{CacheType::kF16, 64, 64},
                                         Held{CacheType::kF16, 20, 16},
                                         Held{CacheType::kQ8, 64, 32}, Held{CacheType::kQ6, 64, 64},
                                         Held{CacheType::kQ6, 48, 16},
                                         Held{CacheType::kQ4, 128, 64}),
                         [](const auto& p) {
                           return std::string(cache_type_name(p.param.type)) + "_h" +
                                  std::to_string(p.param.dim) + "_pages" +
                                  std::to_string(p.param.page_tokens);
                         });

}  // namespace
}  // namespace cicada::kernels
