#define CICADA_EMULATED_TILES
#include "cicada/kernels/matmul/tile_body-inl.h"

namespace cicada::kernels {

extern const MatmulKernels matmul_kernels_amx_emulated;
const MatmulKernels matmul_kernels_amx_emulated = {
    .matmul = matmul, .glu = glu, .fill_panels = fill_panels};

}  // namespace cicada::kernels
