#include "cicada/kernels/rows/body-inl.h"

namespace cicada::kernels {

extern const RowKernels row_kernels_scalar;
const RowKernels row_kernels_scalar = {.rms_norm = rms_norm,
                                       .quantize = quantize,
                                       .quantize_wide = quantize_wide,
                                       .to_bf16 = to_bf16,
                                       .add = add,
                                       .scale = scale,
                                       .rope = rope,
                                       .hadamard = hadamard,
                                       .key_bias = key_bias,
                                       .note_peak = note_peak};

}  // namespace cicada::kernels
