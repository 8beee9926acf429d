// The product as mathematics says it: plain loops in double over decoded weights and activations.
// The specification that every level is tested against; never optimised.
#pragma once

#include <span>
#include <vector>

#include "cicada/kernels/matmul/matmul.h"

namespace cicada::kernels {

// What the activations stand for. Shapes: result [rows, columns].
std::vector<double> decode_activations(const Activations& x);

// y[m][n] = sum over k of x[m][k] * w[n][k]; `magnitude` gets the same sum of absolute values.
// Shapes: w [n, k] row by row; y, magnitude [m, n].
void matmul_reference(std::span<const double> x, std::span<const float> w, std::size_t m,
                      std::size_t n, std::size_t k, std::vector<double>& y,
                      std::vector<double>& magnitude);

}  // namespace cicada::kernels
