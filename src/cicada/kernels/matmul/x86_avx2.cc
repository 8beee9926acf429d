#include "cicada/kernels/matmul/body-inl.h"

namespace cicada::kernels {

extern const MatmulKernels matmul_kernels_avx2;
const MatmulKernels matmul_kernels_avx2 = {.matmul = matmul, .glu = glu};

}  // namespace cicada::kernels
