#include "cicada/kernels/matmul/matmul.h"

#include "cicada/kernels/variants.h"

namespace cicada::kernels {

#define CICADA_VARIANT(name, level) extern const MatmulKernels matmul_kernels_##name;
#include "cicada/kernels/matmul/variants.inc"
#undef CICADA_VARIANT

const MatmulKernels& matmul_kernels(platform::IsaLevel level) {
  static constexpr Variant<MatmulKernels> kVariants[] = {
#define CICADA_VARIANT(name, level) {platform::IsaLevel::level, &matmul_kernels_##name},
#include "cicada/kernels/matmul/variants.inc"
#undef CICADA_VARIANT
  };
  return choose(kVariants, level);
}

}  // namespace cicada::kernels
