#include "cicada/kernels/matmul/reference.h"

#include <cmath>

namespace cicada::kernels {
namespace {

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

void matmul_reference(std::span<const double> x, std::span<const float> w, std::size_t m,
                      std::size_t n, std::size_t k, std::vector<double>& y,
                      std::vector<double>& magnitude) {
  y.assign(m * n, 0.0);
  magnitude.assign(m * n, 0.0);
  for (std::size_t row = 0; row < m; ++row) {
    for (std::size_t column = 0; column < n; ++column) {
      for (std::size_t i = 0; i < k; ++i) {
        const double term = x[row * k + i] * static_cast<double>(w[column * k + i]);
        y[row * n + column] += term;
        magnitude[row * n + column] += std::fabs(term);
      }
    }
  }
}

}  // namespace cicada::kernels
