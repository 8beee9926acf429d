#include "cicada/kernels/machine/body-inl.h"

namespace cicada::kernels {

extern const MachineKernels machine_kernels_avx2;
const MachineKernels machine_kernels_avx2 = {.read = read, .int8_products = int8_products};

}  // namespace cicada::kernels
