// Keys cached without their static bias: what the bias adds to a score is added at score time.
#include <cmath>

#include "cicada/kernels/attention/attention.h"
#include "cicada/kernels/attention/cache_for_test.h"
#include "cicada/kernels/rows/rows.h"
#include "cicada/kernels/test_support.h"
#include "cicada/tensor/buffer.h"

namespace cicada::kernels {
namespace {

struct Shape {
  std::size_t head_dim;
  std::size_t half;  // pairs that RoPE turns
};

constexpr std::size_t kLength = 300;
constexpr std::size_t kPages = (kLength + kKeyTile - 1) / kKeyTile;

double angle(std::size_t pair, double position, std::size_t half) {
  return position * std::pow(1000.0, -static_cast<double>(pair) / static_cast<double>(half));
}

// The bias as RoPE turns it at a position.
std::vector<double> turned(std::span<const float> b, std::size_t position, std::size_t half) {
  std::vector<double> out(b.begin(), b.end());
  for (std::size_t i = 0; i < half; ++i) {
    const double c = std::cos(angle(i, static_cast<double>(position), half));
    const double s = std::sin(angle(i, static_cast<double>(position), half));
    out[i] = static_cast<double>(b[i]) * c - static_cast<double>(b[half + i]) * s;
    out[half + i] = static_cast<double>(b[half + i]) * c + static_cast<double>(b[i]) * s;
  }
  return out;
}

class KeyBiasTest : public testing::TestWithParam<Shape> {};

TEST_P(KeyBiasTest, ScoresAreThoseOfKeysWithTheirBias) {
  const auto [dim, half] = GetParam();
  const std::size_t padded = (half + 15) / 16 * 16;
  CachedHead head{.head_dim = dim, .value_dim = 16};
  const std::size_t slab_bytes = head.slab_bytes();
  std::vector<std::byte> memory(kPages * 4 * slab_bytes);
  std::vector<const std::byte*> pages;
  for (std::size_t p = 0; p < kPages; ++p) pages.push_back(memory.data() + p * 4 * slab_bytes);
  head.pages = pages.data();
  const std::vector<float> keys = random_floats(kLength * dim, 1);
  const std::vector<float> values = random_floats(kLength * 16, 2);
  for (std::size_t j = 0; j < kLength; ++j) {
    std::byte* slab = memory.data() + j / kSlabTokens * slab_bytes;
    const AttentionKernels& kernels = attention_kernels(platform::IsaLevel::kScalar);
    kernels.store_key(CacheType::kF16, &keys[j * dim], dim, j % kSlabTokens, slab);
    kernels.store_value(CacheType::kF16, &values[j * 16], 16, j % kSlabTokens,
                        slab + head.key_bytes());
  }
  std::vector<float> tile_angles(kPages * 2 * padded, 0.0F);
  std::vector<float> place_angles(2 * padded * kKeyTile, 0.0F);
  for (std::size_t i = 0; i < half; ++i) {
    for (std::size_t p = 0; p < kPages; ++p) {
      const double a = angle(i, static_cast<double>(p * kKeyTile), half);
      tile_angles[p * 2 * padded + i] = static_cast<float>(std::cos(a));
      tile_angles[(p * 2 + 1) * padded + i] = static_cast<float>(std::sin(a));
    }
    for (std::size_t j = 0; j < kKeyTile; ++j) {
      const double a = angle(i, static_cast<double>(j), half);
      place_angles[i * kKeyTile + j] = static_cast<float>(std::cos(a));
      place_angles[(padded + i) * kKeyTile + j] = static_cast<float>(std::sin(a));
    }
  }
  const std::vector<float> b = random_floats(dim, 3, 4.0F);
  const std::vector<float> q = random_floats(dim, 4, 0.2F);
  std::vector<double> scores;
  double top = -INFINITY;
  for (std::size_t j = 0; j < kLength; ++j) {
    const std::vector<double> bias = turned(b, j, half);
    const auto key = cached_key(CacheType::kF16, memory.data() + j / kSlabTokens * slab_bytes, dim,
                                j % kSlabTokens);
    double score = 0.0;
    for (std::size_t d = 0; d < dim; ++d) {
      score += static_cast<double>(q[d]) * (static_cast<double>(key[d]) + bias[d]);
    }
    scores.push_back(score);
    top = std::max(top, score);
  }
  std::vector<double> expected(16, 0.0);
  double sum = 0.0;
  for (std::size_t j = 0; j < kLength; ++j) {
    const double weight = std::exp2(scores[j] - top);
    sum += weight;
    for (std::size_t d = 0; d < 16; ++d) {
      expected[d] +=
          weight * static_cast<double>(tensor::f16_to_f32(tensor::f32_to_f16(values[j * 16 + d])));
    }
  }
  std::vector<float> bits;
  for (const platform::IsaLevel level : runnable_levels()) {
    std::vector<float> factors(2 * padded + 16);
    row_kernels(level).key_bias(q.data(), b.data(), half, dim, factors.data());
    alignas(64) float out[16];
    float stats[2];
    const AttentionRow row{.q = q.data(),
                           .position = kLength - 1,
                           .key_bias = factors.data(),
                           .out = out,
                           .stats = stats};
    tensor::Buffer scratch =
        *tensor::Buffer::create(attention_scratch_floats(dim, 16, 1) * sizeof(float));
    attention_kernels(level).attend({.cache = head,
                                     .key_bias = {.tile_angles = tile_angles.data(),
                                                  .place_angles = place_angles.data(),
                                                  .half = padded},
                                     .key_end = kLength,
                                     .rows = &row,
                                     .num_rows = 1,
                                     .scratch = scratch.as<float>().data()});
    for (std::size_t d = 0; d < 16; ++d) {
      EXPECT_NEAR(static_cast<double>(out[d]) / static_cast<double>(stats[1]), expected[d] / sum,
                  2e-5)
          << platform::name(level) << " " << d;
    }
    if (bits.empty()) bits.assign(out, out + 16);
    EXPECT_EQ(bits, std::vector<float>(out, out + 16)) << platform::name(level);
  }
}

INSTANTIATE_TEST_SUITE_P(shapes, KeyBiasTest,
                         testing::Values(Shape{16, 8}, Shape{64, 32}, Shape{24, 8}, Shape{40, 20},
                                         Shape{128, 64}),
                         [](const auto& p) {
                           return "h" + std::to_string(p.param.head_dim) + "_pairs" +
                                  std::to_string(p.param.half);
                         });

}  // namespace
}  // namespace cicada::kernels
