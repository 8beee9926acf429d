#include "cicada/kernels/matmul/tile_body-inl.h"

namespace cicada::kernels {

extern const MatmulKernels matmul_kernels_amx;
const MatmulKernels matmul_kernels_amx = {.matmul = matmul, .glu = glu, .fill_panels = fill_panels};

}  // namespace cicada::kernels
