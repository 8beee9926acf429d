// The product as mathematics says it: plain loops in double over decoded weights and activations.
// The specification that every level is tested against; never optimised.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cicada/kernels/matmul/matmul.h"

namespace cicada::kernels {

// Weights as they enter the sum. Shapes: [rows, columns] row by row.
struct DecodedWeights {
  std::vector<double> value;  // scale * q + min, exact
  std::vector<double> size;   // |scale * q| + |min|: what roundings are measured against
};

// Decodes rows of a file. Shapes: file [rows, columns] as the file stores them.
DecodedWeights decode_weights(tensor::DType dtype, std::span<const std::byte> file,
                              std::size_t rows, std::size_t columns);

// What the activations stand for. Shapes: result [rows, columns].
std::vector<double> decode_activations(const Activations& x);

// y[m][n] = sum over k of x[m][k] * w[n][k]; `magnitude` is the same sum of absolute values, with
// the sizes of the weights.
struct ReferenceProduct {
  std::vector<double> y;
  std::vector<double> magnitude;
};
ReferenceProduct matmul_reference(std::span<const double> x, const DecodedWeights& w, std::size_t m,
                                  std::size_t n, std::size_t k);

}  // namespace cicada::kernels
