#include "cicada/kernels/matmul/matmul.h"

#include "cicada/base/check.h"

namespace cicada::kernels {

#define CICADA_VARIANT(name, level) extern const MatmulKernels matmul_kernels_##name;
#include "cicada/kernels/matmul/variants.inc"
#undef CICADA_VARIANT

const MatmulKernels& matmul_kernels(platform::IsaLevel level) {
  switch (level) {
#define CICADA_VARIANT(name, value) \
  case platform::IsaLevel::value:   \
    return matmul_kernels_##name;
#include "cicada/kernels/matmul/variants.inc"
#undef CICADA_VARIANT
    case platform::IsaLevel::kAvxVnni:
    case platform::IsaLevel::kAmx:
      break;
  }
  check_failed("level is built", "no product kernels of this level", __FILE__, __LINE__);
}

}  // namespace cicada::kernels
