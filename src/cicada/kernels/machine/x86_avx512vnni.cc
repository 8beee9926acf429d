#include "cicada/kernels/machine/body-inl.h"

namespace cicada::kernels {

extern const MachineKernels machine_kernels_avx512vnni;
const MachineKernels machine_kernels_avx512vnni = {.read = read, .int8_products = int8_products};

}  // namespace cicada::kernels
