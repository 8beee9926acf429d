#include "cicada/kernels/rows/rows.h"

#include <cmath>
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

TEST(Quantize, IntegersAreTheNearestAndSumsExact) {
  std::vector<float> x = random_floats(576, 1);
  std::fill_n(x.begin() + 64, 32, 0.0F);
  for (const platform::IsaLevel level : runnable_levels()) {
    std::vector<QuantBlock> narrow(18);
    std::vector<WideQuantBlock> wide(18);
    row_kernels(level).quantize(x.data(), x.size(), narrow.data(), 1);
    row_kernels(level).quantize_wide(x.data(), x.size(), wide.data(), 1);
    expect_quantized(x, narrow, 127);
    expect_quantized(x, wide, 127 * 128);
    EXPECT_EQ(narrow[2].scale, 0.0F);
  }
}

TEST(Quantize, LevelsGiveEqualBits) {
  const std::vector<float> x = random_floats(320, 2, 30.0F);
  std::vector<WideQuantBlock> first(10);
  scalar().quantize_wide(x.data(), x.size(), first.data(), 1);
  for (const platform::IsaLevel level : runnable_levels()) {
    std::vector<WideQuantBlock> wide(10);
    row_kernels(level).quantize_wide(x.data(), x.size(), wide.data(), 1);
    EXPECT_EQ(std::memcmp(first.data(), wide.data(), wide.size() * sizeof(WideQuantBlock)), 0)
        << platform::name(level);
  }
}

TEST(Quantize, InfinityStaysVisibleInTheScale) {
  std::vector<float> x(32, 1.0F);
  x[5] = std::numeric_limits<float>::infinity();
  for (const platform::IsaLevel level : runnable_levels()) {
    QuantBlock block;
    row_kernels(level).quantize(x.data(), x.size(), &block, 1);
    EXPECT_FALSE(std::isfinite(block.scale));
  }
}

TEST(RmsNorm, EqualsTheFormula) {
  for (const std::size_t n : {1U, 5U, 16U, 33U, 576U}) {
    const std::vector<float> x = random_floats(n, 3);
    const std::vector<float> gain = random_floats(n, 4);
    double squares = 0.0;
    for (const float v : x) squares += static_cast<double>(v) * static_cast<double>(v);
    const double inverse = 1.0 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
    std::vector<float> first(n);
    scalar().rms_norm(x.data(), gain.data(), 1e-5F, n, first.data());
    for (std::size_t i = 0; i < n; ++i) {
      const double expected = static_cast<double>(x[i]) * inverse * static_cast<double>(gain[i]);
      // The sum of squares has at most n/16 + 5 roundings of terms of one sign; half of that, by
      // the square root, and five more for mean, root, quotient and the two products.
      const double roundings = (static_cast<double>(n) / 16.0 + 5.0) / 2.0 + 5.0;
      EXPECT_NEAR(static_cast<double>(first[i]), expected,
                  roundings * 0x1p-24 * std::fabs(expected));
    }
    for (const platform::IsaLevel level : runnable_levels()) {
      std::vector<float> y(n);
      row_kernels(level).rms_norm(x.data(), gain.data(), 1e-5F, n, y.data());
      EXPECT_EQ(std::memcmp(first.data(), y.data(), n * sizeof(float)), 0) << platform::name(level);
    }
  }
}

TEST(Rope, TurnsPairsAndLeavesTheRest) {
  for (const std::size_t half : {1U, 6U, 16U, 32U}) {
    const std::vector<float> angles = random_floats(half, 5);
    std::vector<float> cosines(half);
    std::vector<float> sines(half);
    for (std::size_t i = 0; i < half; ++i) {
      cosines[i] = std::cos(angles[i]);
      sines[i] = std::sin(angles[i]);
    }
    const std::vector<float> x = random_floats(2 * half + 3, 6);
    for (const platform::IsaLevel level : runnable_levels()) {
      std::vector<float> y = x;
      row_kernels(level).rope(cosines.data(), sines.data(), half, y.data());
      for (std::size_t i = 0; i < half; ++i) {
        EXPECT_EQ(y[i], x[i] * cosines[i] - x[half + i] * sines[i]);
        EXPECT_EQ(y[half + i], x[half + i] * cosines[i] + x[i] * sines[i]);
      }
      for (std::size_t i = 2 * half; i < x.size(); ++i) EXPECT_EQ(y[i], x[i]);
    }
  }
}

TEST(Store, KeysAndValuesAreRoundedToHalfAndClamped) {
  std::vector<float> x = random_floats(21, 7, 100.0F);
  x[3] = 1e9F;
  x[4] = -1e9F;
  for (const platform::IsaLevel level : runnable_levels()) {
    std::vector<std::uint16_t> tile(21 * 16, 0xFFFF);
    std::vector<std::uint16_t> value(21);
    row_kernels(level).store_key(x.data(), 21, tile.data(), 9);
    row_kernels(level).store_value(x.data(), 21, value.data());
    for (std::size_t i = 0; i < 21; ++i) {
      const float clamped = std::fmin(std::fmax(x[i], -65504.0F), 65504.0F);
      EXPECT_EQ(value[i], tensor::f32_to_f16(clamped));
      for (std::size_t slot = 0; slot < 16; ++slot) {
        EXPECT_EQ(tile[i * 16 + slot], slot == 9 ? value[i] : 0xFFFF);
      }
    }
  }
}

TEST(AddAndScale, AreElementwise) {
  for (const platform::IsaLevel level : runnable_levels()) {
    const std::vector<float> x = random_floats(19, 8);
    std::vector<float> y = random_floats(19, 9);
    const std::vector<float> before = y;
    row_kernels(level).add(x.data(), 19, y.data());
    for (std::size_t i = 0; i < 19; ++i) EXPECT_EQ(y[i], before[i] + x[i]);
    row_kernels(level).scale(0.3F, 19, y.data());
    for (std::size_t i = 0; i < 19; ++i) EXPECT_EQ(y[i], (before[i] + x[i]) * 0.3F);
  }
}

}  // namespace
}  // namespace cicada::kernels
