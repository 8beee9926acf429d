// Activation functions over sixteen lanes.
#pragma once

#include "cicada/kernels/matmul/matmul.h"
#include "cicada/kernels/simd-inl.h"

namespace cicada::kernels {
namespace {

// silu(z) = z / (1 + e^-z). The tanh form of GELU is the same with another exponent:
// 0.5 z (1 + tanh u) = z / (1 + e^-2u), u = sqrt(2/pi) (z + 0.044715 z^3).
CICADA_INLINE F32x16 gate_activation(Activation activation, F32x16 z) {
  F32x16 exponent = zero() - z;
  if (activation == Activation::kGeluTanh) {
    const F32x16 cube = z * z * z;
    exponent = broadcast(-1.59576912F) * fma(cube, broadcast(0.044715F), z);
  }
  return z / (broadcast(1.0F) + exp(exponent));
}

}  // namespace
}  // namespace cicada::kernels
