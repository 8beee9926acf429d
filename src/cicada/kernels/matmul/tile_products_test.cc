// Products whose activations are BF16: emulated, and in tile instructions, which are trapped and
// carried out one by one where the processor lacks them.
#include <cmath>
#include <memory>
#include <optional>

#include "cicada/kernels/matmul/amx_trap_for_test.h"
#include "cicada/kernels/matmul/layout.h"
#include "cicada/kernels/matmul/matmul.h"
#include "cicada/kernels/matmul/pack.h"
#include "cicada/kernels/rows/rows.h"
#include "cicada/kernels/test_support.h"
#include "cicada/tensor/dequantize.h"
#include "cicada/tensor/half.h"

namespace cicada::kernels {
namespace {

using platform::IsaLevel;
using tensor::DType;

// BF16 values of a matrix, row by row.
std::vector<double> rounded(const std::vector<float>& values) {
  std::vector<double> result;
  result.reserve(values.size());
  for (const float value : values) {
    result.push_back(static_cast<double>(tensor::bf16_to_f32(tensor::f32_to_bf16(value))));
  }
  return result;
}

constexpr std::size_t kMostColumns = 150;

// The first `rows` rows of a random matrix.
class Weights {
 public:
  Weights(DType dtype, std::size_t rows, std::size_t columns, std::uint32_t seed)
      : packed_(packed_bytes(dtype, rows, columns)),
        view_{.dtype = dtype, .data = packed_.data(), .rows = rows, .columns = columns} {
    std::vector<std::byte> file = random_rows(dtype, kMostColumns, columns, seed);
    file.resize(rows * tensor::row_bytes(dtype, columns));
    pack_groups(dtype, file, rows, columns, packed_.span(), {}, 0, num_groups(rows));
    std::vector<float> values(rows * columns);
    tensor::dequantize_row(dtype, file, values);
    values_ = rounded(values);
  }

  const PackedWeights& view() const { return view_; }
  const std::vector<double>& values() const { return values_; }

 private:
  Guarded<std::byte> packed_;
  PackedWeights view_;
  std::vector<double> values_;
};

class Input {
 public:
  Input(std::size_t rows, std::size_t columns, std::uint32_t seed)
      : tiles_(bf16_elements(rows, columns)) {
    const std::vector<float> values = random_floats(rows * columns, seed);
    for (std::size_t row = 0; row < rows; ++row) {
      row_kernels(IsaLevel::kScalar)
          .to_bf16(values.data() + row * columns, columns,
                   tiles_.data() + bf16_row_index(columns, row));
    }
    values_ = rounded(values);
    view_ = {.format = InputFormat::kBF16, .rows = rows, .columns = columns, .data = tiles_.data()};
  }

  const Activations& view() const { return view_; }
  const std::vector<double>& values() const { return values_; }

 private:
  Guarded<std::uint16_t> tiles_;
  std::vector<double> values_;
  Activations view_;
};

struct Case {
  DType dtype;
  IsaLevel level;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const tensor::DTypeInfo& type : tensor::kDTypes) {
    if (!has_tile_products(type.dtype)) continue;
    for (const IsaLevel level : {IsaLevel::kAmxEmulated, IsaLevel::kAmx}) {
      cases.push_back({type.dtype, level});
    }
  }
  return cases;
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  return std::string(tensor::name(info.param.dtype)) + "_" +
         std::string(platform::name(info.param.level));
}

class TileProducts : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const std::uint32_t features = platform::detect_cpu_features();
    if (!platform::is_supported(IsaLevel::kAmxEmulated, features)) {
      GTEST_SKIP() << "this processor lacks level amx_emulated";
    }
    if (!platform::is_supported(GetParam().level, features)) trap_.emplace();
  }

  // y by groups [split, all) and then [0, split).
  std::vector<float> multiply(const PackedWeights& w, const Activations& x, std::size_t split = 0) {
    Guarded<float> y(std::vector<float>(x.rows * w.rows, NAN));
    const MatmulArgs args{.w = w, .x = x, .y = y.data(), .ldy = w.rows, .scratch = scratch_.get()};
    const MatmulKernels& kernels = matmul_kernels(GetParam().level);
    kernels.matmul(args, split, num_groups(w.rows));
    kernels.matmul(args, 0, split);
    return {y.span().begin(), y.span().end()};
  }

  // A width that is several superblocks, and one that is no whole number of tiles where the type
  // allows it.
  std::vector<std::size_t> widths() const {
    const std::size_t block = tensor::info(GetParam().dtype).block_elements;
    if (block == 1) return {1, 7, 96};
    return block == 32 ? std::vector<std::size_t>{32, 576} : std::vector<std::size_t>{256, 768};
  }

  std::unique_ptr<TileScratch> scratch_ = std::make_unique<TileScratch>();
  std::optional<AmxTrap> trap_;
};

// Roundings of one sum: a tile's two chains of sixteen and their addition, then one addition a
// tile; u = 2^-24 each (Higham, Accuracy and Stability, lemma 3.1).
double rounding_share(std::size_t k) {
  const std::size_t tiles = (k + 31) / 32;
  const double all = 0x1p-24 * static_cast<double>(17 + tiles);
  return all / (1.0 - all);
}

void expect_near_the_exact_product(const Weights& w, const Input& x, const std::vector<float>& y) {
  const std::size_t n = w.view().rows;
  const std::size_t k = w.view().columns;
  for (std::size_t i = 0; i < y.size(); ++i) {
    double exact = 0.0;
    double size = 0.0;
    for (std::size_t j = 0; j < k; ++j) {
      const double term = x.values()[i / n * k + j] * w.values()[i % n * k + j];
      exact += term;
      size += std::fabs(term);
    }
    ASSERT_NEAR(static_cast<double>(y[i]), exact, rounding_share(k) * size)
        << "k " << k << " row " << i / n << " column " << i % n;
  }
}

TEST_P(TileProducts, AreThoseOfRoundedWeightsAndActivations) {
  for (const std::size_t k : widths()) {
    const Weights w(GetParam().dtype, 35, k, 1);
    const Input x(33, k, 2);
    expect_near_the_exact_product(w, x, multiply(w.view(), x.view()));
  }
}

TEST_P(TileProducts, BitsDependOnNeitherBatchNorWidthNorSplit) {
  const std::size_t k = widths().back();
  const Weights all_weights(GetParam().dtype, kMostColumns, k, 3);
  const std::vector<float> expected = multiply(all_weights.view(), Input(50, k, 4).view());
  for (const std::size_t n : {std::size_t{1}, std::size_t{16}, std::size_t{35}, kMostColumns}) {
    const Weights w(GetParam().dtype, n, k, 3);  // the first n rows of them
    for (const std::size_t m : {1U, 2U, 16U, 17U, 33U, 50U}) {
      const Input x(m, k, 4);
      const std::vector<float> y = multiply(w.view(), x.view(), m % (num_groups(n) + 1));
      for (std::size_t row = 0; row < m; ++row) {
        ASSERT_EQ(std::memcmp(&y[row * n], &expected[row * kMostColumns], n * sizeof(float)), 0)
            << "m" << m << "_n" << n << " row " << row;
      }
    }
  }
}

// More rows than a panel is kept for, and more columns than a panel holds.
TEST_P(TileProducts, BitsDependOnNeitherPassesNorRuns) {
  constexpr std::size_t kRows = 530;
  constexpr std::size_t kColumns = 2304;
  const Weights w(GetParam().dtype, 20, kColumns, 5);
  const std::vector<float> y = multiply(w.view(), Input(kRows, kColumns, 6).view());
  const std::vector<float> few = multiply(w.view(), Input(3, kColumns, 6).view());
  ASSERT_EQ(std::memcmp(y.data(), few.data(), few.size() * sizeof(float)), 0);
  expect_near_the_exact_product(w, Input(3, kColumns, 6), few);
  for (const float value : y) ASSERT_TRUE(std::isfinite(value));
}

TEST_P(TileProducts, PanelsThatAreKeptGiveTheSameBits) {
  const std::size_t k = widths().back();
  const Weights w(GetParam().dtype, 35, k, 16);
  const Input x(18, k, 17);
  Guarded<std::uint16_t> panels(num_groups(35) * panel_elements(k));
  matmul_kernels(GetParam().level).fill_panels(w.view(), 1, num_groups(35), panels.data());
  matmul_kernels(GetParam().level).fill_panels(w.view(), 0, 1, panels.data());
  PackedWeights kept = w.view();
  kept.panels = panels.data();
  const std::vector<float> expected = multiply(w.view(), x.view());
  const std::vector<float> y = multiply(kept, x.view(), 1);
  ASSERT_EQ(std::memcmp(y.data(), expected.data(), y.size() * sizeof(float)), 0);
}

TEST_P(TileProducts, EpiloguesFollowTheSum) {
  const std::size_t k = widths().front();
  const Weights w(GetParam().dtype, 21, k, 7);
  const Input x(18, k, 8);
  const std::vector<float> plain = multiply(w.view(), x.view());
  const std::vector<float> bias = random_floats(21, 9);
  const std::vector<float> before = random_floats(plain.size(), 10);
  std::vector<float> y = before;
  matmul_kernels(GetParam().level)
      .matmul({.w = w.view(),
               .x = x.view(),
               .bias = bias.data(),
               .y = y.data(),
               .ldy = 21,
               .epilogue = Epilogue::kAdd,
               .scratch = scratch_.get()},
              0, num_groups(21));
  for (std::size_t i = 0; i < y.size(); ++i) {
    ASSERT_EQ(y[i], before[i] + (plain[i] + bias[i % 21])) << i;
  }
}

TEST_P(TileProducts, GluIsTheActivationOfOneProductTimesTheOther) {
  const std::size_t k = widths().back();
  constexpr std::size_t kColumns = kMostColumns;
  const Weights gate(GetParam().dtype, kColumns, k, 11);
  const Weights up(GetParam().dtype, kColumns, k, 12);
  const Input x(18, k, 13);
  const std::vector<float> z = multiply(gate.view(), x.view());
  const std::vector<float> u = multiply(up.view(), x.view());
  Guarded<float> y(std::vector<float>(z.size(), NAN));
  const GluArgs args{.gate = gate.view(),
                     .up = up.view(),
                     .gate_x = x.view(),
                     .up_x = x.view(),
                     .y = y.data(),
                     .ldy = kColumns,
                     .scratch = scratch_.get()};
  matmul_kernels(GetParam().level).glu(args, 3, num_groups(kColumns));
  matmul_kernels(GetParam().level).glu(args, 0, 3);
  for (std::size_t i = 0; i < z.size(); ++i) {
    const double gate_value = static_cast<double>(z[i]);
    const double expected = gate_value / (1.0 + std::exp(-gate_value)) * static_cast<double>(u[i]);
    // e^x of the kernels stops at 88.
    ASSERT_NEAR(static_cast<double>(y.data()[i]), expected,
                8.0 * 0x1p-24 * std::fabs(expected) +
                    std::fabs(gate_value * static_cast<double>(u[i])) * 0x1p-126)
        << "z " << gate_value;
  }
}

// The instructions and their emulation agree.
TEST_P(TileProducts, BitsAreThoseOfTheEmulation) {
  const std::size_t k = widths().back();
  const Weights w(GetParam().dtype, 35, k, 14);
  const Input x(33, k, 15);
  const std::vector<float> y = multiply(w.view(), x.view());
  std::vector<float> emulated(y.size());
  matmul_kernels(IsaLevel::kAmxEmulated)
      .matmul({.w = w.view(),
               .x = x.view(),
               .y = emulated.data(),
               .ldy = 35,
               .scratch = scratch_.get()},
              0, num_groups(35));
  ASSERT_EQ(std::memcmp(y.data(), emulated.data(), y.size() * sizeof(float)), 0);
}

INSTANTIATE_TEST_SUITE_P(matmul, TileProducts, testing::ValuesIn(all_cases()), case_name);

}  // namespace
}  // namespace cicada::kernels
