#include "cicada/kernels/matmul/body-inl.h"

namespace cicada::kernels {

extern const MatmulKernels matmul_kernels_scalar;
const MatmulKernels matmul_kernels_scalar = {.matmul = matmul, .glu = glu};

}  // namespace cicada::kernels
