#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cicada/kernels/attention/attention.h"
#include "cicada/kernels/attention/cache_for_test.h"
#include "cicada/kernels/test_support.h"
#include "cicada/tensor/half.h"

namespace cicada::kernels {
namespace {

// Ordinary numbers, those beyond float16, infinities, subnormals of float16, halves between two.
std::vector<float> varied_keys() {
  std::vector<float> x = random_floats(60, 7, 100.0F);
  const float odd[] = {1e9F,    -1e9F,   65504.0F, 65519.0F, 65520.0F, INFINITY,    -INFINITY,
                       0.0F,    -0.0F,   6e-8F,    2.9e-8F,  1e-12F,   0x1p-24F,    0x1p-25F,
                       2049.0F, 2051.0F, 6.1e-5F,  -3e-6F,   1e-38F,   0x1.ffcp-15F};
  std::copy(std::begin(odd), std::end(odd), x.begin());
  return x;
}

TEST(Store, KeysAndValuesAreRoundedToHalfAndClamped) {
  const std::vector<float> x = varied_keys();
  for (const platform::IsaLevel level : runnable_levels()) {
    for (const std::size_t n : {std::size_t{1}, std::size_t{15}, std::size_t{48}, x.size()}) {
      Guarded<std::uint16_t> keys(std::vector<std::uint16_t>(n * 16, 0xFFFF));
      Guarded<std::uint16_t> values(std::vector<std::uint16_t>(n * 16, 0xFFFF));
      const Guarded<float> input(
          std::vector<float>(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(n)));
      for (const std::size_t slot : {0U, 9U, 15U}) {
        attention_kernels(level).store_key(CacheType::kF16, input.data(), n, slot,
                                           reinterpret_cast<std::byte*>(keys.data()));
        attention_kernels(level).store_value(CacheType::kF16, input.data(), n, slot,
                                             reinterpret_cast<std::byte*>(values.data()));
      }
      for (std::size_t i = 0; i < n; ++i) {
        const std::uint16_t half =
            tensor::f32_to_f16(std::fmin(std::fmax(x[i], -65504.0F), 65504.0F));
        for (std::size_t slot = 0; slot < 16; ++slot) {
          const std::uint16_t expected = slot == 0 || slot == 9 || slot == 15 ? half : 0xFFFF;
          EXPECT_EQ(keys.data()[i * 16 + slot], expected) << platform::name(level) << x[i];
          EXPECT_EQ(values.data()[slot * n + i], expected) << platform::name(level) << x[i];
        }
      }
    }
  }
}

// A page that another sequence used before is read under weights of 0, and 0 * NaN would leak into
// its next user. (The row that made the NaN still shows it: its residual stream is NaN.)
TEST(Store, PagesStayFinite) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), INFINITY, -INFINITY}) {
    const std::vector<float> x(40, bad);
    for (const platform::IsaLevel level : runnable_levels()) {
      for (const CacheType type : kCacheTypes) {
        const CachedSlab slab(level, type, x, x, 3);
        for (const float v : slab.key()) EXPECT_TRUE(std::isfinite(v)) << cache_type_name(type);
        for (const float v : slab.value()) EXPECT_TRUE(std::isfinite(v)) << cache_type_name(type);
      }
    }
  }
}

class PackedStore : public testing::TestWithParam<CacheType> {};

// Scales are chosen for the least squared error, so that it is no more than that of a scale that
// just holds every element, by which each is off by half a step at most; scales are rounded to
// float16.
TEST_P(PackedStore, ErrorIsBelowHalfAStepOfTheWidestScale) {
  const auto half = static_cast<float>(cache_offset(GetParam()));
  for (const std::size_t dim : {8U, 16U, 64U, 80U, 96U, 128U}) {
    const std::vector<float> key = random_floats(dim, 5);
    const std::vector<float> value = random_floats(dim, 6, 3.0F);
    const CachedSlab slab(platform::IsaLevel::kScalar, GetParam(), key, value, 7);
    for (const auto& [x, got] : {std::pair(key, slab.key()), std::pair(value, slab.value())}) {
      for (std::size_t begin = 0; begin < dim; begin += kScaleGroup) {
        float largest = 0.0F;
        float squares = 0.0F;
        const std::size_t end = std::min(dim, begin + kScaleGroup);
        for (std::size_t d = begin; d < end; ++d) {
          largest = std::fmax(largest, std::fabs(x[d]));
          squares += (got[d] - x[d]) * (got[d] - x[d]);
        }
        const float step = largest / (half - 1.0F) * 1.001F;
        EXPECT_LE(std::sqrt(squares / static_cast<float>(end - begin)), 0.5F * step)
            << cache_type_name(GetParam()) << " " << dim;
      }
    }
  }
}

TEST_P(PackedStore, EveryLevelWritesTheSameBytesAndOnlyItsPlace) {
  for (const std::size_t dim : {8U, 12U, 64U, 80U, 256U}) {
    const std::vector<float> x = random_floats(dim, 8);
    for (const std::size_t slot : {0U, 6U, 15U}) {
      const CachedSlab expected(platform::IsaLevel::kScalar, GetParam(), x, x, slot);
      for (const platform::IsaLevel level : runnable_levels()) {
        const CachedSlab got(level, GetParam(), x, x, slot);
        EXPECT_EQ(got.bytes(), expected.bytes()) << platform::name(level) << " " << dim;
      }
      // Written beside another position, both stand as if alone.
      CachedSlab both(platform::IsaLevel::kScalar, GetParam(), x, x, slot);
      const std::vector<float> other = random_floats(dim, 9);
      both.put(platform::IsaLevel::kScalar, other, other, (slot + 1) % kSlabTokens);
      EXPECT_EQ(both.key_at(slot), expected.key()) << slot;
      EXPECT_EQ(both.value_at(slot), expected.value()) << slot;
    }
  }
}

TEST_P(PackedStore, ZerosAreExactAndTinyNumbersHarmless) {
  for (const float x : {0.0F, 1e-12F, 1e-38F}) {
    const std::vector<float> row(64, x);
    const CachedSlab slab(platform::IsaLevel::kScalar, GetParam(), row, row, 1);
    for (const float v : slab.key()) EXPECT_EQ(v, 0.0F);
    for (const float v : slab.value()) EXPECT_EQ(v, 0.0F);
  }
}

INSTANTIATE_TEST_SUITE_P(types, PackedStore,
                         testing::Values(CacheType::kQ8, CacheType::kQ6, CacheType::kQ4),
                         [](const auto& p) { return std::string(cache_type_name(p.param)); });

}  // namespace
}  // namespace cicada::kernels
