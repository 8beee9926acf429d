#include "cicada/kernels/matmul/reference.h"

#include <cmath>
#include <cstring>

#include "cicada/tensor/dequantize.h"

namespace cicada::kernels {
namespace {

using tensor::DType;

constexpr std::size_t kNowhere = SIZE_MAX;

// Where a block of a type with minima keeps its float16 scale and the scale of its minima.
struct ScaleBytes {
  std::size_t scale = kNowhere;
  std::size_t minimum = kNowhere;
};

ScaleBytes scale_bytes(DType dtype) {
  switch (dtype) {
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return {.scale = 0, .minimum = 2};
    case DType::kQ2_K:
      return {.scale = 80, .minimum = 82};
    default:
      return {};
  }
}

// The rows decoded with the float16 at `zeroed` of every block put to 0.
std::vector<float> decode_without(DType dtype, std::span<const std::byte> file,
                                  std::size_t elements, std::size_t zeroed) {
  std::vector<std::byte> bytes(file.begin(), file.end());
  const std::size_t block = tensor::info(dtype).block_bytes;
  for (std::size_t at = 0; zeroed != kNowhere && at < bytes.size(); at += block) {
    std::memset(&bytes[at + zeroed], 0, 2);
  }
  std::vector<float> values(elements);
  tensor::dequantize_row(dtype, bytes, values);
  return values;
}

double decode_one(const Activations& x, std::size_t row, std::size_t column) {
  const std::size_t block = quant_block_index(x.rows, x.columns / 32, row, column / 32);
  const std::size_t i = column % 32;
  if (x.format == InputFormat::kInt8) {
    const QuantBlock& b = static_cast<const QuantBlock*>(x.data)[block];
    return static_cast<double>(b.scale) * b.q[i];
  }
  const WideQuantBlock& b = static_cast<const WideQuantBlock*>(x.data)[block];
  return static_cast<double>(b.high.scale) * (128 * b.high.q[i] + b.low[i]);
}

}  // namespace

// scale * q and min are exact in float each, their sum is not: so the two are decoded apart.
DecodedWeights decode_weights(DType dtype, std::span<const std::byte> file, std::size_t rows,
                              std::size_t columns) {
  const ScaleBytes at = scale_bytes(dtype);
  const std::vector<float> scaled = decode_without(dtype, file, rows * columns, at.minimum);
  DecodedWeights w;
  w.value.assign(scaled.begin(), scaled.end());
  w.size.resize(scaled.size());
  const std::vector<float> minima = at.minimum == kNowhere
                                        ? std::vector<float>(scaled.size(), 0.0F)
                                        : decode_without(dtype, file, rows * columns, at.scale);
  for (std::size_t i = 0; i < scaled.size(); ++i) {
    w.size[i] = std::fabs(w.value[i]) + std::fabs(static_cast<double>(minima[i]));
    w.value[i] += static_cast<double>(minima[i]);
  }
  return w;
}

std::vector<double> decode_activations(const Activations& x) {
  std::vector<double> values(x.rows * x.columns);
  for (std::size_t row = 0; row < x.rows; ++row) {
    for (std::size_t column = 0; column < x.columns; ++column) {
      values[row * x.columns + column] =
          x.format == InputFormat::kF32
              ? static_cast<double>(static_cast<const float*>(x.data)[row * x.columns + column])
              : decode_one(x, row, column);
    }
  }
  return values;
}

ReferenceProduct matmul_reference(std::span<const double> x, const DecodedWeights& w, std::size_t m,
                                  std::size_t n, std::size_t k) {
  ReferenceProduct product;
  product.y.assign(m * n, 0.0);
  product.magnitude.assign(m * n, 0.0);
  for (std::size_t row = 0; row < m; ++row) {
    for (std::size_t column = 0; column < n; ++column) {
      for (std::size_t i = 0; i < k; ++i) {
        product.y[row * n + column] += x[row * k + i] * w.value[column * k + i];
        product.magnitude[row * n + column] += std::fabs(x[row * k + i]) * w.size[column * k + i];
      }
    }
  }
  return product;
}

}  // namespace cicada::kernels
