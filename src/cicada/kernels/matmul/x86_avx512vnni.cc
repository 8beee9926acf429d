#include "cicada/kernels/matmul/body-inl.h"

namespace cicada::kernels {

extern const MatmulKernels matmul_kernels_avx512vnni;
const MatmulKernels matmul_kernels_avx512vnni = {.matmul = matmul, .glu = glu};

}  // namespace cicada::kernels
