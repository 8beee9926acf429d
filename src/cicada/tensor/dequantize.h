// Decodes rows of any supported type to float32. This is the specification of every block layout:
// plain loops, no intrinsics, any machine. Fast paths are tested against it.
#pragma once

#include <cstddef>
#include <span>

#include "cicada/tensor/dtype.h"

namespace cicada::tensor {

// Shapes: out [elements]; bytes [row_bytes(dtype, elements)]; elements whole blocks (checked).
void dequantize_row(DType dtype, std::span<const std::byte> bytes, std::span<float> out);

}  // namespace cicada::tensor
