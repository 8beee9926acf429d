#include "cicada/kernels/machine/body-inl.h"

namespace cicada::kernels {

extern const MachineKernels machine_kernels_avxvnni;
const MachineKernels machine_kernels_avxvnni = {.read = read, .int8_products = int8_products};

}  // namespace cicada::kernels
