#include "cicada/kernels/machine/body-inl.h"

namespace cicada::kernels {

extern const MachineKernels machine_kernels_scalar;
const MachineKernels machine_kernels_scalar = {.read = read, .int8_products = int8_products};

}  // namespace cicada::kernels
