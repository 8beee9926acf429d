// What follows a sum: bias, addition to the residual stream, the gate.
#pragma once

#include "cicada/kernels/activations-inl.h"
#include "cicada/kernels/matmul/layout.h"
#include "cicada/kernels/matmul/matmul.h"

namespace cicada::kernels {
namespace {

// Sixteen sums of one row of activations into y. Shapes: acc [16].
CICADA_INLINE void finish(const MatmulArgs& args, std::size_t row, std::size_t column,
                          const float* acc) {
  float* y = args.y + row * args.ldy + column;
  if (column + kGroupRows <= args.w.rows) {
    F32x16 value = load(acc);
    if (args.bias != nullptr) value = value + load(args.bias + column);
    if (args.epilogue == Epilogue::kAdd) value = load(y) + value;
    store(y, value);
    return;
  }
  for (std::size_t i = 0; column + i < args.w.rows; ++i) {
    const float value = args.bias != nullptr ? acc[i] + args.bias[column + i] : acc[i];
    y[i] = args.epilogue == Epilogue::kAdd ? y[i] + value : value;
  }
}

// Sixteen sums of gate and of up into y. Shapes: gate, up [16].
CICADA_INLINE void finish_glu(const GluArgs& args, std::size_t row, std::size_t column,
                              const float* gate, const float* up) {
  float* y = args.y + row * args.ldy + column;
  const F32x16 value = gate_activation(args.activation, load(gate)) * load(up);
  if (column + kGroupRows <= args.gate.rows) {
    store(y, value);
    return;
  }
  alignas(64) float lanes[kGroupRows];
  store(lanes, value);
  for (std::size_t i = 0; column + i < args.gate.rows; ++i) y[i] = lanes[i];
}

}  // namespace
}  // namespace cicada::kernels
