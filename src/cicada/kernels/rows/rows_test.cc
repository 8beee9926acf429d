#include "cicada/kernels/rows/rows.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>

#include "cicada/kernels/test_support.h"

namespace cicada::kernels {
namespace {

const RowKernels& scalar() { return row_kernels(platform::IsaLevel::kScalar); }

std::int32_t integer(const QuantBlock& block, std::size_t i) { return block.q[i]; }
std::int32_t integer(const WideQuantBlock& block, std::size_t i) {
  return 128 * block.high.q[i] + block.low[i];
}
const QuantBlock& sums(const QuantBlock& block) { return block; }
const QuantBlock& sums(const WideQuantBlock& block) { return block.high; }

// All of a block that has a meaning.
bool same_bits(const QuantBlock& a, const QuantBlock& b) {
  return std::memcmp(&a, &b, offsetof(QuantBlock, unused)) == 0;
}

// Every integer is the nearest one, in range, and the sums are exact.
template <typename Block>
void expect_quantized(const std::vector<float>& x, const std::vector<Block>& blocks,
                      std::int32_t most) {
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    std::int32_t halves[2] = {};
    const double scale = static_cast<double>(sums(blocks[b]).scale);
    for (std::size_t i = 0; i < 32; ++i) {
      const std::int32_t q = integer(blocks[b], i);
      halves[i / 16] += q;
      ASSERT_LE(std::abs(q), most);
      // Half a step, and the roundings of x * inverse and of the scale: two units of the quotient.
      const double step = 0.5 + most * 0x1p-22;
      ASSERT_LE(std::fabs(static_cast<double>(x[32 * b + i]) - scale * q), scale * step);
    }
    ASSERT_EQ(sums(blocks[b]).negative_half_sums[0], -halves[0]);
    ASSERT_EQ(sums(blocks[b]).negative_half_sums[1], -halves[1]);
    ASSERT_EQ(sums(blocks[b]).negative_sum, -(halves[0] + halves[1]));
    ASSERT_EQ(sums(blocks[b]).sum,
              sums(blocks[b]).scale * static_cast<float>(halves[0] + halves[1]));
  }
}

std::vector<QuantBlock> quantized(const RowKernels& kernels, const std::vector<float>& x) {
  std::vector<QuantBlock> blocks(x.size() / 32);
  kernels.quantize(Guarded<float>(x).data(), x.size(), blocks.data(), 1);
  return blocks;
}
std::vector<WideQuantBlock> quantized_wide(const RowKernels& kernels, const std::vector<float>& x) {
  std::vector<WideQuantBlock> blocks(x.size() / 32);
  kernels.quantize_wide(Guarded<float>(x).data(), x.size(), blocks.data(), 1);
  return blocks;
}

// Numbers whose blocks differ: of ordinary size, huge, tiny, zeros (both signs), one spike, ties.
std::vector<float> varied_blocks() {
  std::vector<float> x = random_floats(576, 1);
  for (std::size_t i = 32; i < 64; ++i) x[i] *= 1e30F;
  std::fill_n(x.begin() + 64, 32, 0.0F);
  std::fill_n(x.begin() + 96, 32, -0.0F);
  for (std::size_t i = 128; i < 160; ++i) x[i] *= 1e-30F;
  x[170] = 12345.0F;
  for (std::size_t i = 192; i < 224; ++i) x[i] = static_cast<float>(i) - 207.5F;
  x[223] = 127.0F;
  return x;
}

TEST(Quantize, IntegersAreTheNearestAndSumsExact) {
  const std::vector<float> x = varied_blocks();
  for (const platform::IsaLevel level : runnable_levels()) {
    const auto narrow = quantized(row_kernels(level), x);
    const auto wide = quantized_wide(row_kernels(level), x);
    expect_quantized(x, narrow, 127);
    expect_quantized(x, wide, 127 * 128);
    for (const std::size_t zeros : {2U, 3U}) {
      EXPECT_EQ(narrow[zeros].scale, 0.0F);
      EXPECT_EQ(wide[zeros].high.scale, 0.0F);
    }
  }
}

TEST(Quantize, LevelsGiveEqualBits) {
  const std::vector<float> x = varied_blocks();
  const auto narrow = quantized(scalar(), x);
  const auto wide = quantized_wide(scalar(), x);
  for (const platform::IsaLevel level : runnable_levels()) {
    const auto narrow_here = quantized(row_kernels(level), x);
    const auto wide_here = quantized_wide(row_kernels(level), x);
    for (std::size_t b = 0; b < narrow.size(); ++b) {
      EXPECT_TRUE(same_bits(narrow[b], narrow_here[b])) << platform::name(level) << " block " << b;
      EXPECT_TRUE(same_bits(wide[b].high, wide_here[b].high)) << platform::name(level) << " " << b;
      EXPECT_EQ(std::memcmp(wide[b].low, wide_here[b].low, 32), 0) << platform::name(level);
    }
  }
}

TEST(Quantize, WritesTheBlocksOfItsStrideOnly) {
  const std::vector<float> x = random_floats(96, 2);
  for (const platform::IsaLevel level : runnable_levels()) {
    const auto expected = quantized(row_kernels(level), x);
    std::vector<QuantBlock> apart(9);
    std::memset(apart.data(), 0x55, apart.size() * sizeof(QuantBlock));
    const QuantBlock untouched = apart[1];
    row_kernels(level).quantize(x.data(), x.size(), apart.data(), 4);
    for (std::size_t b = 0; b < apart.size(); ++b) {
      EXPECT_TRUE(same_bits(apart[b], b % 4 == 0 ? expected[b / 4] : untouched)) << b;
    }
  }
}

// Where 1 / largest would overflow, a block is taken as zeros rather than as nonsense.
TEST(Quantize, SubnormalBlocksAreZeros) {
  for (const float size : {1e-33F, 1e-36F, 1e-42F}) {
    std::vector<float> x(32, 0.0F);
    x[3] = size;
    x[9] = -size / 2;
    for (const platform::IsaLevel level : runnable_levels()) {
      const QuantBlock narrow = quantized(row_kernels(level), x)[0];
      const WideQuantBlock wide = quantized_wide(row_kernels(level), x)[0];
      for (std::size_t i = 0; i < 32; ++i) {
        EXPECT_EQ(integer(narrow, i), 0);
        EXPECT_EQ(integer(wide, i), 0);
      }
    }
  }
}

// A number that is none must not come out as one: the product of such a block is not finite.
TEST(Quantize, InfinityAndNaNStayVisibleInTheScaleWhereverTheyStand) {
  for (const float odd :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    for (std::size_t at = 0; at < 32; ++at) {
      std::vector<float> x = random_floats(32, 3);
      x[at] = odd;
      for (const platform::IsaLevel level : runnable_levels()) {
        const QuantBlock narrow = quantized(row_kernels(level), x)[0];
        const WideQuantBlock wide = quantized_wide(row_kernels(level), x)[0];
        EXPECT_FALSE(std::isfinite(narrow.scale)) << platform::name(level) << " " << odd << at;
        EXPECT_FALSE(std::isfinite(wide.high.scale)) << platform::name(level) << " " << odd << at;
        for (std::size_t i = 0; i < 32; ++i) {
          EXPECT_LE(std::abs(integer(narrow, i)), 127);
          EXPECT_LE(std::abs(integer(wide, i)), 127 * 128);
        }
      }
    }
  }
}

constexpr std::size_t kSizes[] = {1, 5, 15, 16, 17, 33, 576};

TEST(RmsNorm, EqualsTheFormula) {
  for (const std::size_t n : kSizes) {
    const std::vector<float> x = random_floats(n, 3);
    const std::vector<float> gain = random_floats(n, 4);
    double squares = 0.0;
    for (const float v : x) squares += static_cast<double>(v) * static_cast<double>(v);
    const double inverse =
        1.0 / std::sqrt(squares / static_cast<double>(n) + static_cast<double>(1e-5F));
    // A lane's sum of squares is rounded ceil(n/16) times, the tree adds 4, mean and epsilon 2: all
    // terms have one sign, so their share is at most that many u. The root halves it; root,
    // quotient and two products add 4.
    const double roundings = (std::ceil(static_cast<double>(n) / 16.0) + 6.0) / 2.0 + 4.0;
    const double share = roundings * 0x1p-24 * (1.0 + 0x1p-10);
    std::vector<float> first;
    for (const platform::IsaLevel level : runnable_levels()) {
      Guarded<float> y(n);
      row_kernels(level).rms_norm(Guarded<float>(x).data(), Guarded<float>(gain).data(), 1e-5F, n,
                                  y.data());
      for (std::size_t i = 0; i < n; ++i) {
        const double expected = static_cast<double>(x[i]) * inverse * static_cast<double>(gain[i]);
        ASSERT_NEAR(static_cast<double>(y.data()[i]), expected, share * std::fabs(expected))
            << platform::name(level) << " n " << n;
      }
      if (first.empty()) first.assign(y.span().begin(), y.span().end());
      EXPECT_EQ(std::memcmp(first.data(), y.data(), n * sizeof(float)), 0) << platform::name(level);
    }
  }
}

TEST(RmsNorm, MayWriteOverItsInput) {
  const std::vector<float> gain = random_floats(33, 4);
  for (const platform::IsaLevel level : runnable_levels()) {
    std::vector<float> x = random_floats(33, 3);
    std::vector<float> y(33);
    row_kernels(level).rms_norm(x.data(), gain.data(), 1e-5F, 33, y.data());
    row_kernels(level).rms_norm(x.data(), gain.data(), 1e-5F, 33, x.data());
    EXPECT_EQ(x, y);
  }
}

TEST(RmsNorm, ZerosStayZeroAndNaNSpreads) {
  for (const platform::IsaLevel level : runnable_levels()) {
    std::vector<float> x(33, 0.0F);
    const std::vector<float> gain(33, 2.0F);
    std::vector<float> y(33, 1.0F);
    row_kernels(level).rms_norm(x.data(), gain.data(), 1e-5F, 33, y.data());
    EXPECT_EQ(y, x);
    x[32] = std::numeric_limits<float>::quiet_NaN();
    row_kernels(level).rms_norm(x.data(), gain.data(), 1e-5F, 33, y.data());
    for (const float v : y) EXPECT_TRUE(std::isnan(v));
  }
}

TEST(Rope, TurnsPairsAndLeavesTheRest) {
  for (const std::size_t half : {1U, 6U, 16U, 32U, 36U}) {
    const std::vector<float> angles = random_floats(half, 5);
    std::vector<float> cosines(half);
    std::vector<float> sines(half);
    for (std::size_t i = 0; i < half; ++i) {
      cosines[i] = std::cos(angles[i]);
      sines[i] = std::sin(angles[i]);
    }
    const std::vector<float> x = random_floats(2 * half + 3, 6);
    for (const platform::IsaLevel level : runnable_levels()) {
      Guarded<float> y(x);
      row_kernels(level).rope(Guarded<float>(cosines).data(), Guarded<float>(sines).data(), half,
                              y.data());
      for (std::size_t i = 0; i < half; ++i) {
        EXPECT_EQ(y.data()[i], x[i] * cosines[i] - x[half + i] * sines[i]);
        EXPECT_EQ(y.data()[half + i], x[half + i] * cosines[i] + x[i] * sines[i]);
      }
      for (std::size_t i = 2 * half; i < x.size(); ++i) EXPECT_EQ(y.data()[i], x[i]);
    }
  }
}

TEST(Hadamard, IsItsOwnInverseAndKeepsProducts) {
  for (const std::size_t n : {1U, 2U, 8U, 12U, 16U, 24U, 48U, 64U, 80U, 96U, 128U, 256U}) {
    const std::vector<float> x = random_floats(n, 21);
    const std::vector<float> y = random_floats(n, 22);
    const std::size_t part = n & (~n + 1);
    const auto product = [](std::span<const float> a, std::span<const float> b) {
      double sum = 0.0;
      for (std::size_t i = 0; i < a.size(); ++i) {
        sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
      }
      return sum;
    };
    std::vector<float> expected;
    for (const platform::IsaLevel level : runnable_levels()) {
      Guarded<float> turned(x);
      Guarded<float> other(y);
      row_kernels(level).hadamard(n, turned.data());
      row_kernels(level).hadamard(n, other.data());
      const std::vector<float> got(turned.data(), turned.data() + n);
      // The definition: element i is the sum of x[j], each negative where i and j share an odd
      // number of bits, over the square root of the part's size.
      for (std::size_t i = 0; i < n; ++i) {
        double sum = 0.0;
        for (std::size_t j = 0; j < part; ++j) {
          const double term = static_cast<double>(x[i / part * part + j]);
          sum += std::popcount(i % part & j) % 2 == 0 ? term : -term;
        }
        EXPECT_NEAR(static_cast<double>(got[i]), sum / std::sqrt(static_cast<double>(part)), 1e-5)
            << platform::name(level) << " " << n << " " << i;
      }
      EXPECT_NEAR(product(got, std::span(other.data(), n)), product(x, y), 1e-4);
      row_kernels(level).hadamard(n, turned.data());
      for (std::size_t i = 0; i < n; ++i) EXPECT_NEAR(turned.data()[i], x[i], 1e-5);
      if (expected.empty()) expected = got;
      EXPECT_EQ(got, expected) << platform::name(level) << " " << n;
    }
  }
}

TEST(AddAndScale, AreElementwise) {
  for (const platform::IsaLevel level : runnable_levels()) {
    for (const std::size_t n : kSizes) {
      const std::vector<float> x = random_floats(n, 8);
      const std::vector<float> before = random_floats(n, 9);
      Guarded<float> y(before);
      row_kernels(level).add(Guarded<float>(x).data(), n, y.data());
      for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(y.data()[i], before[i] + x[i]);
      row_kernels(level).scale(0.3F, n, y.data());
      for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(y.data()[i], (before[i] + x[i]) * 0.3F);
    }
  }
}

}  // namespace
}  // namespace cicada::kernels
