// Encodes rows of float32 into the types that `cicada convert` writes: f32, f16, bf16, q8_0, q4_0.
// The results equal, byte for byte, those of the `gguf` Python package (its reference quantisers).
#pragma once

#include <cstddef>
#include <span>

#include "cicada/base/result.h"
#include "cicada/tensor/dtype.h"

namespace cicada::tensor {

// True for the types that quantize_row writes.
bool can_quantize(DType dtype);

// Shapes: values [n], n whole blocks (checked); out [row_bytes(dtype, n)]. Precondition:
// can_quantize.
void quantize_row(DType dtype, std::span<const float> values, std::span<std::byte> out);

}  // namespace cicada::tensor
