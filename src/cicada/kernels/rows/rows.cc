#include "cicada/kernels/rows/rows.h"

#include "cicada/kernels/variants.h"

namespace cicada::kernels {

#define CICADA_VARIANT(name, level) extern const RowKernels row_kernels_##name;
#include "cicada/kernels/rows/variants.inc"
#undef CICADA_VARIANT

const RowKernels& row_kernels(platform::IsaLevel level) {
  static constexpr Variant<RowKernels> kVariants[] = {
#define CICADA_VARIANT(name, level) {platform::IsaLevel::level, &row_kernels_##name},
#include "cicada/kernels/rows/variants.inc"
#undef CICADA_VARIANT
  };
  return choose(kVariants, level);
}

}  // namespace cicada::kernels
