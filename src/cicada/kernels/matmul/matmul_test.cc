#include "cicada/kernels/matmul/matmul.h"

#include <cmath>
#include <optional>

#include "cicada/kernels/matmul/layout.h"
#include "cicada/kernels/matmul/pack.h"
#include "cicada/kernels/matmul/reference.h"
#include "cicada/kernels/rows/rows.h"
#include "cicada/kernels/test_support.h"
#include "cicada/tensor/dequantize.h"

namespace cicada::kernels {
namespace {

using platform::IsaLevel;
using tensor::DType;

constexpr IsaLevel kLevels[] = {
#define CICADA_VARIANT(name, level) IsaLevel::level,
#include "cicada/kernels/matmul/variants.inc"
#undef CICADA_VARIANT
};

constexpr std::size_t kMostRows = 33;     // two tiles of activations and one row
constexpr std::size_t kMostColumns = 35;  // two groups of weights and three rows

// The first `rows` rows of a random weight matrix.
std::vector<std::byte> first_rows(DType dtype, std::size_t rows, std::size_t columns,
                                  std::uint32_t seed) {
  std::vector<std::byte> file = random_rows(dtype, kMostColumns, columns, seed);
  file.resize(rows * tensor::row_bytes(dtype, columns));
  return file;
}

// Such a matrix, packed so that it ends at a page that may not be read.
class Weights {
 public:
  Weights(DType dtype, std::size_t rows, std::size_t columns, std::uint32_t seed)
      : file_(first_rows(dtype, rows, columns, seed)),
        packed_(packed_bytes(dtype, rows, columns)),
        view_{.dtype = dtype, .data = packed_.data(), .rows = rows, .columns = columns} {
    pack_groups(dtype, file_, rows, columns, packed_.span(), {}, 0, num_groups(rows));
  }

  const PackedWeights& view() const { return view_; }
  DecodedWeights decoded() const {
    return decode_weights(view_.dtype, file_, view_.rows, view_.columns);
  }

 private:
  std::vector<std::byte> file_;
  Guarded<std::byte> packed_;
  PackedWeights view_;
};

// Activations in one of the forms, made by the scalar row kernels; rows are the same whatever the
// number of rows. They too end at a page that may not be read.
class Input {
 public:
  Input(InputFormat format, std::size_t rows, std::size_t columns, std::uint32_t seed)
      : values_(random_floats(rows * columns, seed)) {
    const RowKernels& kernels = row_kernels(IsaLevel::kScalar);
    const std::size_t blocks = columns / kBlockColumns;
    view_ = {.format = format, .rows = rows, .columns = columns, .data = values_.data()};
    if (format == InputFormat::kInt8) view_.data = narrow_.emplace(rows * blocks).data();
    if (format == InputFormat::kInt15) view_.data = wide_.emplace(rows * blocks).data();
    for (std::size_t row = 0; row < rows; ++row) {
      const float* x = values_.data() + row * columns;
      const std::size_t first = quant_block_index(rows, blocks, row, 0);
      const std::size_t stride = tile_width(rows, row / kTileRows);
      if (narrow_) kernels.quantize(x, columns, narrow_->data() + first, stride);
      if (wide_) kernels.quantize_wide(x, columns, wide_->data() + first, stride);
    }
  }

  const Activations& view() const { return view_; }

 private:
  Guarded<float> values_;
  std::optional<Guarded<QuantBlock>> narrow_;
  std::optional<Guarded<WideQuantBlock>> wide_;
  Activations view_;
};

struct Case {
  InputFormat format;
  DType dtype;
  IsaLevel level;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const tensor::DTypeInfo& type : tensor::kDTypes) {
    for (const InputFormat format : {InputFormat::kInt8, InputFormat::kInt15, InputFormat::kF32}) {
      if (is_float(type.dtype) != (format == InputFormat::kF32)) continue;
      for (const IsaLevel level : kLevels) cases.push_back({format, type.dtype, level});
    }
  }
  return cases;
}

// "int8_q4_1_avx512vnni".
std::string case_name(const testing::TestParamInfo<Case>& info) {
  std::string name(input_format_name(info.param.format));
  name = name.substr(0, name.find('/')) + "_";
  name += tensor::name(info.param.dtype);
  return name + "_" + std::string(platform::name(info.param.level));
}

// 576 is SmolLM2's width: no multiple of 256.
std::vector<std::size_t> widths(DType dtype) {
  const std::size_t block = tensor::info(dtype).block_elements;
  if (block == 1) return {1, 7, 96};
  return block == 32 ? std::vector<std::size_t>{32, 96, 576} : std::vector<std::size_t>{256, 768};
}

// y by groups [split, all) and then [0, split). Shapes: result [m, n].
std::vector<float> multiply(IsaLevel level, const PackedWeights& w, const Activations& x,
                            std::size_t split = 0) {
  Guarded<float> y(std::vector<float>(x.rows * w.rows, NAN));
  const MatmulArgs args{.w = w, .x = x, .y = y.data(), .ldy = w.rows};
  const MatmulKernels& kernels = matmul_kernels(level);
  kernels.matmul(args, split, num_groups(w.rows));
  kernels.matmul(args, 0, split);
  return {y.span().begin(), y.span().end()};
}

// How far an output may be from the exact one, as a share of the sum of its terms' sizes. With u =
// 2^-24, the half unit of float32: the accumulator is rounded once a fused multiply-add, N times in
// all (once a column for float types, else once a block and scale group, twice where there are
// minima). What is multiplied was itself rounded at most twice: the product of the two scales (or
// scale times sum), and a 15-bit dot product turned into float; 8-bit dot products are below 2^24.
// N + 2 roundings of one chain are within (N + 2) u / (1 - (N + 2) u) of the sum of sizes (Higham,
// Accuracy and Stability, lemma 3.1). The reference's own rounding in double is 2^-29 of one u.
double rounding_share(const Case& c, std::size_t k) {
  const PackedLayout layout = packed_layout(c.dtype);
  const std::size_t roundings =
      is_float(c.dtype) ? k : k / kBlockColumns * layout.groups * (layout.has_min ? 2 : 1);
  const double all = 0x1p-24 * static_cast<double>(roundings + 2);
  return all / (1.0 - all) * (1.0 + 0x1p-20);
}

class Matmul : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!platform::is_supported(GetParam().level, platform::detect_cpu_features())) {
      GTEST_SKIP() << "this processor lacks level " << platform::name(GetParam().level);
    }
  }
};

TEST_P(Matmul, EqualsTheDoubleReferenceWithinRounding) {
  const Case c = GetParam();
  for (const std::size_t k : widths(c.dtype)) {
    const Weights w(c.dtype, kMostColumns, k, 11);
    const Input x(c.format, kMostRows, k, 12);
    const ReferenceProduct expected =
        matmul_reference(decode_activations(x.view()), w.decoded(), kMostRows, kMostColumns, k);
    const std::vector<float> y = multiply(c.level, w.view(), x.view());
    const double share = rounding_share(c, k);
    for (std::size_t i = 0; i < y.size(); ++i) {
      ASSERT_NEAR(static_cast<double>(y[i]), expected.y[i], share * expected.magnitude[i])
          << "k " << k << " row " << i / kMostColumns << " column " << i % kMostColumns;
    }
  }
}

TEST_P(Matmul, BitsDependOnNeitherLevelNorBatchNorWidthNorSplit) {
  const Case c = GetParam();
  for (const std::size_t k : widths(c.dtype)) {
    const Weights all_weights(c.dtype, kMostColumns, k, 21);
    const Input all(c.format, kMostRows, k, 22);
    const std::vector<float> expected = multiply(IsaLevel::kScalar, all_weights.view(), all.view());
    for (const std::size_t n : {1U, 16U, 33U, 35U}) {
      const Weights w(c.dtype, n, k, 21);  // the first n rows of them
      for (const std::size_t m : {1U, 2U, 3U, 4U, 7U, 8U, 15U, 16U, 17U, 31U, 33U}) {
        const Input x(c.format, m, k, 22);
        const std::vector<float> y = multiply(c.level, w.view(), x.view(), m % (num_groups(n) + 1));
        for (std::size_t row = 0; row < m; ++row) {
          ASSERT_EQ(std::memcmp(&y[row * n], &expected[row * kMostColumns], n * sizeof(float)), 0)
              << "m" << m << "_n" << n << "_k" << k << " row " << row;
        }
      }
    }
  }
}

TEST_P(Matmul, EpiloguesFollowTheSumAndWriteTheirColumnsOnly) {
  const Case c = GetParam();
  const std::size_t k = widths(c.dtype).front();
  constexpr std::size_t kRows = 18;
  constexpr std::size_t kGap = 5;
  for (const std::size_t n : {16U, 21U}) {
    const Weights w(c.dtype, n, k, 31);
    const Input x(c.format, kRows, k, 32);
    const std::vector<float> plain = multiply(c.level, w.view(), x.view());
    const Guarded<float> bias(random_floats(n, 33));
    const std::size_t ldy = n + kGap;
    for (const bool has_bias : {false, true}) {
      for (const Epilogue epilogue : {Epilogue::kStore, Epilogue::kAdd}) {
        const std::vector<float> before = random_floats(kRows * ldy - kGap, 34);
        Guarded<float> y(before);
        matmul_kernels(c.level).matmul({.w = w.view(),
                                        .x = x.view(),
                                        .bias = has_bias ? bias.data() : nullptr,
                                        .y = y.data(),
                                        .ldy = ldy,
                                        .epilogue = epilogue},
                                       0, num_groups(n));
        for (std::size_t i = 0; i < before.size(); ++i) {
          const std::size_t column = i % ldy;
          float expected = before[i];
          if (column < n) {
            expected = plain[i / ldy * n + column];
            if (has_bias) expected += bias.data()[column];
            if (epilogue == Epilogue::kAdd) expected = before[i] + expected;
          }
          ASSERT_EQ(y.data()[i], expected) << "row " << i / ldy << " column " << column;
        }
      }
    }
  }
}

// |z / (1 + e^-u) * up| off by: e^-u within 2 units of the exponent that was computed, the sum, the
// quotient and the product with up a half unit each: 4 units at most, 8 u. The exponent of silu is
// exact. GELU's, -2 sqrt(2/pi) (z + 0.044715 z^3), has two roundings in z^3, one in the fma, one in
// the product and one half each in the two constants: 5 u of its terms' sizes, which moves e^-u by
// that much, and the quotient by no more.
double glu_share(Activation activation, double z) {
  if (activation == Activation::kSilu) return 8.0 * 0x1p-24;
  const double exponent = 2.0 * std::sqrt(2.0 / M_PI) * std::fabs(z + 0.044715 * z * z * z);
  return (8.0 + 5.0 * exponent) * 0x1p-24;
}

double activate(Activation activation, double z) {
  if (activation == Activation::kSilu) return z / (1.0 + std::exp(-z));
  // 0.5 z (1 + tanh u) without its cancellation for negative u.
  return z / (1.0 + std::exp(-2.0 * std::sqrt(2.0 / M_PI) * (z + 0.044715 * z * z * z)));
}

// The kernel's e^x is 0 below -87 and stops at 88, where e^x is past any weight of a float32 sum:
// what is left of z / (1 + e^88) is below |z| 2^-126.
double glu_floor(double z, double up) { return std::fabs(z * up) * 0x1p-126; }

TEST_P(Matmul, GluIsTheActivationOfOneProductTimesTheOther) {
  const Case c = GetParam();
  const std::size_t k = widths(c.dtype).back();
  constexpr std::size_t kRows = 18;
  constexpr std::size_t kColumns = kMostColumns;
  const Weights gate(c.dtype, kColumns, k, 51);
  const Weights up(c.dtype, kColumns, k, 52);
  const Input x(c.format, kRows, k, 53);
  const std::vector<float> z = multiply(IsaLevel::kScalar, gate.view(), x.view());
  const std::vector<float> u = multiply(IsaLevel::kScalar, up.view(), x.view());
  for (const Activation activation : {Activation::kSilu, Activation::kGeluTanh}) {
    std::vector<float> results[2];
    for (const IsaLevel level : {c.level, IsaLevel::kScalar}) {
      Guarded<float> y(std::vector<float>(kRows * kColumns, NAN));
      const GluArgs args{.gate = gate.view(),
                         .up = up.view(),
                         .gate_x = x.view(),
                         .up_x = x.view(),
                         .y = y.data(),
                         .ldy = kColumns,
                         .activation = activation};
      matmul_kernels(level).glu(args, 1, num_groups(kColumns));
      matmul_kernels(level).glu(args, 0, 1);
      results[level == c.level ? 0 : 1].assign(y.span().begin(), y.span().end());
    }
    const std::vector<float>& y = results[0];
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double gate_value = static_cast<double>(z[i]);
      const double up_value = static_cast<double>(u[i]);
      const double expected = activate(activation, gate_value) * up_value;
      ASSERT_NEAR(
          static_cast<double>(y[i]), expected,
          glu_share(activation, gate_value) * std::fabs(expected) + glu_floor(gate_value, up_value))
          << "z " << gate_value;
    }
    const std::vector<float>& scalar = c.level == IsaLevel::kScalar ? results[0] : results[1];
    ASSERT_EQ(std::memcmp(y.data(), scalar.data(), y.size() * sizeof(float)), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(matmul, Matmul, testing::ValuesIn(all_cases()), case_name);

// Gate and up may be of different types and read different forms of the same rows.
TEST(MatmulGlu, MixesTypesAndForms) {
  const Weights gate(DType::kQ5_0, 35, 64, 61);
  const Weights up(DType::kF16, 35, 64, 62);
  const Input narrow(InputFormat::kInt8, 3, 64, 63);
  const Input plain(InputFormat::kF32, 3, 64, 63);
  for (const IsaLevel level : runnable_levels()) {
    const std::vector<float> z = multiply(level, gate.view(), narrow.view());
    const std::vector<float> u = multiply(level, up.view(), plain.view());
    std::vector<float> y(3 * 35);
    matmul_kernels(level).glu({.gate = gate.view(),
                               .up = up.view(),
                               .gate_x = narrow.view(),
                               .up_x = plain.view(),
                               .y = y.data(),
                               .ldy = 35},
                              0, 3);
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double expected =
          activate(Activation::kSilu, static_cast<double>(z[i])) * static_cast<double>(u[i]);
      ASSERT_NEAR(static_cast<double>(y[i]), expected,
                  glu_share(Activation::kSilu, 0.0) * std::fabs(expected));
    }
  }
}

// Every size of gate, from where it vanishes to where it is the identity: one column of weight 1.
TEST(MatmulGlu, ActivationsHoldOverTheWholeRange) {
  constexpr std::size_t kValues = 4001;
  std::vector<float> zs(kValues);
  for (std::size_t i = 0; i < kValues; ++i) zs[i] = (static_cast<float>(i) - 2000.0F) * 0.05F;
  std::vector<std::byte> file(kValues * sizeof(float));
  std::memcpy(file.data(), zs.data(), file.size());
  std::vector<std::byte> packed(packed_bytes(DType::kF32, kValues, 1));
  pack_groups(DType::kF32, file, kValues, 1, packed, {}, 0, num_groups(kValues));
  const std::vector<float> ones(kValues, 1.0F);
  std::vector<std::byte> packed_ones(packed.size());
  std::memcpy(file.data(), ones.data(), file.size());
  pack_groups(DType::kF32, file, kValues, 1, packed_ones, {}, 0, num_groups(kValues));
  const float one = 1.0F;
  const Activations x{.rows = 1, .columns = 1, .data = &one};
  for (const Activation activation : {Activation::kSilu, Activation::kGeluTanh}) {
    std::vector<float> first;
    for (const IsaLevel level : runnable_levels()) {
      std::vector<float> y(kValues);
      matmul_kernels(level).glu({.gate = {.data = packed.data(), .rows = kValues, .columns = 1},
                                 .up = {.data = packed_ones.data(), .rows = kValues, .columns = 1},
                                 .gate_x = x,
                                 .up_x = x,
                                 .y = y.data(),
                                 .ldy = kValues,
                                 .activation = activation},
                                0, num_groups(kValues));
      for (std::size_t i = 0; i < kValues; ++i) {
        const double z = static_cast<double>(zs[i]);
        const double expected = activate(activation, z);
        ASSERT_NEAR(static_cast<double>(y[i]), expected,
                    glu_share(activation, z) * std::fabs(expected) + glu_floor(z, 1.0))
            << platform::name(level) << " z " << z;
      }
      if (first.empty()) first = y;
      ASSERT_EQ(std::memcmp(first.data(), y.data(), kValues * sizeof(float)), 0)
          << platform::name(level);
    }
  }
}

TEST(MatmulReference, DecodesWeightsToTheFilesValues) {
  for (const tensor::DTypeInfo& type : tensor::kDTypes) {
    const std::vector<std::byte> file = random_rows(type.dtype, 3, 512, 71);
    std::vector<float> values(3 * 512);
    tensor::dequantize_row(type.dtype, file, values);
    const DecodedWeights decoded = decode_weights(type.dtype, file, 3, 512);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(static_cast<float>(decoded.value[i]), values[i]) << type.name << " " << i;
    }
  }
}

}  // namespace
}  // namespace cicada::kernels
