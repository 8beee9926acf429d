#include "cicada/kernels/machine/machine.h"

#include "cicada/kernels/variants.h"

namespace cicada::kernels {

#define CICADA_VARIANT(name, level) extern const MachineKernels machine_kernels_##name;
#include "cicada/kernels/machine/variants.inc"
#undef CICADA_VARIANT

const MachineKernels& machine_kernels(platform::IsaLevel level) {
  static constexpr Variant<MachineKernels> kVariants[] = {
#define CICADA_VARIANT(name, level) {platform::IsaLevel::level, &machine_kernels_##name},
#include "cicada/kernels/machine/variants.inc"
#undef CICADA_VARIANT
  };
  return choose(kVariants, level);
}

}  // namespace cicada::kernels
