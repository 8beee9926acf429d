#include "cicada/kernels/matmul/matmul.h"

#include <sys/mman.h>

#include <cmath>

#include "cicada/kernels/matmul/layout.h"
#include "cicada/kernels/matmul/pack.h"
#include "cicada/kernels/matmul/reference.h"
#include "cicada/kernels/rows/rows.h"
#include "cicada/kernels/test_support.h"
#include "cicada/tensor/dequantize.h"

namespace cicada::kernels {
namespace {

using tensor::DType;

// A weight matrix packed so that it ends at a page that may not be read.
class GuardedWeights {
 public:
  GuardedWeights(DType dtype, std::size_t rows, std::size_t columns, std::uint32_t seed)
      : file_(random_rows(dtype, rows, columns, seed)) {
    constexpr std::size_t kPage = 4096;
    const std::size_t bytes = packed_bytes(dtype, rows, columns);
    mapped_bytes_ = (bytes + kPage - 1) / kPage * kPage + kPage;
    void* memory =
        ::mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    base_ = static_cast<std::byte*>(memory);
    EXPECT_EQ(::mprotect(base_ + mapped_bytes_ - kPage, kPage, PROT_NONE), 0);
    std::byte* packed = base_ + mapped_bytes_ - kPage - bytes;
    pack_groups(dtype, file_, rows, columns, {packed, bytes}, {}, 0, num_groups(rows));
    weights_ = {.dtype = dtype, .data = packed, .rows = rows, .columns = columns};
    decoded_.resize(rows * columns);
    tensor::dequantize_row(dtype, file_, decoded_);
  }
  GuardedWeights(const GuardedWeights&) = delete;
  GuardedWeights& operator=(const GuardedWeights&) = delete;
  ~GuardedWeights() { ::munmap(base_, mapped_bytes_); }

  const PackedWeights& packed() const { return weights_; }
  const std::vector<float>& decoded() const { return decoded_; }

 private:
  std::vector<std::byte> file_;
  std::byte* base_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  PackedWeights weights_;
  std::vector<float> decoded_;
};

// Activations in one of the forms, made by the scalar row kernels.
class Input {
 public:
  Input(InputFormat format, std::size_t rows, std::size_t columns, std::uint32_t seed)
      : values_(random_floats(rows * columns, seed)) {
    const RowKernels& kernels = row_kernels(platform::IsaLevel::kScalar);
    narrow_.resize(rows * (columns / 32));
    wide_.resize(rows * (columns / 32));
    for (std::size_t row = 0; row < rows && format != InputFormat::kF32; ++row) {
      const std::size_t first = quant_block_index(rows, columns / 32, row, 0);
      const std::size_t stride = tile_width(rows, row / kTileRows);
      kernels.quantize(values_.data() + row * columns, columns, narrow_.data() + first, stride);
      kernels.quantize_wide(values_.data() + row * columns, columns, wide_.data() + first, stride);
    }
    view_ = {.format = format, .rows = rows, .columns = columns, .data = values_.data()};
    if (format == InputFormat::kInt8) view_.data = narrow_.data();
    if (format == InputFormat::kInt15) view_.data = wide_.data();
  }

  const Activations& view() const { return view_; }

 private:
  std::vector<float> values_;
  std::vector<QuantBlock> narrow_;
  std::vector<WideQuantBlock> wide_;
  Activations view_;
};

struct Case {
  InputFormat format;
  DType dtype;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const tensor::DTypeInfo& type : tensor::kDTypes) {
    if (is_float(type.dtype)) {
      cases.push_back({InputFormat::kF32, type.dtype});
    } else {
      cases.push_back({InputFormat::kInt8, type.dtype});
      cases.push_back({InputFormat::kInt15, type.dtype});
    }
  }
  return cases;
}

std::vector<std::size_t> widths(DType dtype) {
  const std::size_t block = tensor::info(dtype).block_elements;
  if (block == 1) return {1, 7, 96};
  return block == 32 ? std::vector<std::size_t>{32, 96, 576} : std::vector<std::size_t>{256, 768};
}

std::vector<float> multiply(platform::IsaLevel level, const PackedWeights& w, const Activations& x,
                            std::size_t split = 0) {
  std::vector<float> y(x.rows * w.rows, NAN);
  const MatmulArgs args{.w = w, .x = x, .y = y.data(), .ldy = w.rows};
  const std::size_t groups = num_groups(w.rows);
  const MatmulKernels& kernels = matmul_kernels(level);
  kernels.matmul(args, split, groups);
  kernels.matmul(args, 0, split);
  return y;
}

// Roundings of one output: every block adds a rounded scale product, a rounded integer (15-bit
// inputs) and a fused multiply-add, twice with two scale groups, and one more each for minima;
// float types one fused multiply-add a column. Each is at most half a unit (eps = 2^-24) of a
// partial sum, which is bounded by the sum of the terms' sizes. A term of a type with minima is
// scale * q + min, two parts that may cancel: each is at most twice the spread of the block, which
// is at most twice its largest weight, so their sizes add up to at most 5 times that weight.
double bound(const Case& c, std::span<const double> x, std::span<const float> w, std::size_t k) {
  const std::size_t block = is_float(c.dtype) ? 1 : kBlockColumns;
  const PackedLayout layout = packed_layout(c.dtype);
  const double roundings =
      is_float(c.dtype) ? static_cast<double>(k + 1)
                        : static_cast<double>(k / block) * layout.groups * (layout.has_min ? 5 : 3);
  double sizes = 0.0;
  for (std::size_t b = 0; b < k; b += block) {
    double largest = 0.0;
    double sum = 0.0;
    for (std::size_t i = b; i < b + block; ++i) {
      largest = std::max(largest, std::fabs(static_cast<double>(w[i])));
      sum += std::fabs(x[i]);
    }
    sizes += sum * largest * (layout.has_min ? 5.0 : 1.0);
  }
  return 0x1p-24 * roundings * sizes;
}

class Matmul : public testing::TestWithParam<Case> {};

TEST_P(Matmul, EqualsTheDoubleReferenceWithinRounding) {
  const Case c = GetParam();
  for (const std::size_t k : widths(c.dtype)) {
    const std::size_t n = 33;
    const std::size_t m = 5;
    const GuardedWeights w(c.dtype, n, k, 11);
    const Input x(c.format, m, k, 12);
    const std::vector<double> decoded = decode_activations(x.view());
    std::vector<double> expected;
    std::vector<double> magnitude;
    matmul_reference(decoded, w.decoded(), m, n, k, expected, magnitude);
    for (const platform::IsaLevel level : runnable_levels()) {
      const std::vector<float> y = multiply(level, w.packed(), x.view());
      for (std::size_t row = 0; row < m; ++row) {
        for (std::size_t column = 0; column < n; ++column) {
          const double allowed = bound(c, std::span(decoded).subspan(row * k, k),
                                       std::span(w.decoded()).subspan(column * k, k), k);
          ASSERT_NEAR(static_cast<double>(y[row * n + column]), expected[row * n + column], allowed)
              << platform::name(level) << " k " << k << " row " << row << " column " << column;
        }
      }
    }
  }
}

TEST_P(Matmul, BitsDependOnNeitherLevelNorBatchNorSplit) {
  const Case c = GetParam();
  const std::size_t k = widths(c.dtype).back();
  const std::size_t n = 40;
  const GuardedWeights w(c.dtype, n, k, 21);
  const std::size_t most = 33;
  const Input all(c.format, most, k, 22);
  const std::vector<float> expected = multiply(platform::IsaLevel::kScalar, w.packed(), all.view());
  for (const platform::IsaLevel level : runnable_levels()) {
    // The first m rows alone give the bits they have among all 33, however groups are shared out.
    for (const std::size_t m : {1U, 2U, 3U, 7U, 8U, 15U, 16U, 17U, 31U, 33U}) {
      const Input some(c.format, m, k, 22);
      const std::vector<float> y = multiply(level, w.packed(), some.view(), m % 3);
      ASSERT_EQ(std::memcmp(y.data(), expected.data(), y.size() * sizeof(float)), 0)
          << platform::name(level) << " m " << m;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(matmul, Matmul, testing::ValuesIn(all_cases()), [](const auto& p) {
  std::string name = std::string(tensor::name(p.param.dtype)) + "_";
  name += input_format_name(p.param.format);
  std::erase(name, '/');
  return name;
});

TEST(MatmulEpilogue, BiasAndAdditionFollowTheSum) {
  const GuardedWeights w(DType::kQ8_0, 37, 64, 31);
  const Input x(InputFormat::kInt8, 3, 64, 32);
  const std::vector<float> bias = random_floats(37, 33);
  for (const platform::IsaLevel level : runnable_levels()) {
    const std::vector<float> plain = multiply(level, w.packed(), x.view());
    std::vector<float> y(3 * 37, 0.5F);
    matmul_kernels(level).matmul({.w = w.packed(),
                                  .x = x.view(),
                                  .bias = bias.data(),
                                  .y = y.data(),
                                  .ldy = 37,
                                  .epilogue = Epilogue::kAdd},
                                 0, num_groups(37));
    for (std::size_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(y[i], 0.5F + (plain[i] + bias[i % 37])) << platform::name(level) << " " << i;
    }
  }
}

TEST(MatmulEpilogue, WritesNothingBesideItsColumns) {
  const GuardedWeights w(DType::kQ4_1, 19, 32, 41);
  const Input x(InputFormat::kInt8, 4, 32, 42);
  for (const platform::IsaLevel level : runnable_levels()) {
    std::vector<float> y(4 * 24, -7.0F);
    matmul_kernels(level).matmul({.w = w.packed(), .x = x.view(), .y = y.data(), .ldy = 24}, 0, 2);
    for (std::size_t row = 0; row < 4; ++row) {
      for (std::size_t column = 19; column < 24; ++column) ASSERT_EQ(y[row * 24 + column], -7.0F);
    }
  }
}

// e^x is within 2 units in the last place, the quotient and the sum add one each: relative error of
// the gate below 8 * 2^-24, and of the product with `up` below 9 * 2^-24; the sigmoid's own slope
// at most doubles the exponent's rounding for |z| < 8.
TEST(MatmulGlu, IsTheActivationOfOneProductTimesTheOther) {
  const std::size_t n = 35;
  const std::size_t k = 64;
  const GuardedWeights gate(DType::kQ5_0, n, k, 51);
  const GuardedWeights up(DType::kF16, n, k, 52);
  const Input narrow(InputFormat::kInt8, 18, k, 53);
  const Input plain(InputFormat::kF32, 18, k, 53);
  std::vector<float> scalar[2];
  for (const platform::IsaLevel level : runnable_levels()) {
    const std::vector<float> g = multiply(level, gate.packed(), narrow.view());
    const std::vector<float> u = multiply(level, up.packed(), plain.view());
    for (const Activation activation : {Activation::kSilu, Activation::kGeluTanh}) {
      std::vector<float> y(18 * n);
      matmul_kernels(level).glu({.gate = gate.packed(),
                                 .up = up.packed(),
                                 .gate_x = narrow.view(),
                                 .up_x = plain.view(),
                                 .y = y.data(),
                                 .ldy = n,
                                 .activation = activation},
                                0, num_groups(n));
      for (std::size_t i = 0; i < y.size(); ++i) {
        const double z = static_cast<double>(g[i]);
        const double inner = std::sqrt(2.0 / M_PI) * (z + 0.044715 * z * z * z);
        // 0.5 z (1 + tanh u) without its cancellation for negative u.
        const double exponent = activation == Activation::kSilu ? z : 2.0 * inner;
        const double act = z / (1.0 + std::exp(-exponent));
        const double expected = act * static_cast<double>(u[i]);
        ASSERT_NEAR(static_cast<double>(y[i]), expected,
                    (16.0 + 2.0 * std::fabs(2.0 * inner)) * 0x1p-24 * std::fabs(expected) + 1e-30)
            << platform::name(level) << " z " << z;
      }
      std::vector<float>& first = scalar[activation == Activation::kSilu ? 0 : 1];
      if (first.empty()) first = y;
      ASSERT_EQ(std::memcmp(first.data(), y.data(), y.size() * sizeof(float)), 0)
          << platform::name(level);
    }
  }
}

}  // namespace
}  // namespace cicada::kernels
