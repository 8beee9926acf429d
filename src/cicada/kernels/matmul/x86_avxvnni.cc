#include "cicada/kernels/matmul/body-inl.h"

namespace cicada::kernels {

extern const MatmulKernels matmul_kernels_avxvnni;
const MatmulKernels matmul_kernels_avxvnni = {.matmul = matmul, .glu = glu};

}  // namespace cicada::kernels
