#include "cicada/kernels/attention/attention.h"

#include "cicada/base/check.h"

namespace cicada::kernels {

#define CICADA_VARIANT(name, level) extern const AttentionKernels attention_kernels_##name;
#include "cicada/kernels/attention/variants.inc"
#undef CICADA_VARIANT

const AttentionKernels& attention_kernels(platform::IsaLevel level) {
  switch (level) {
#define CICADA_VARIANT(name, value) \
  case platform::IsaLevel::value:   \
    return attention_kernels_##name;
#include "cicada/kernels/attention/variants.inc"
#undef CICADA_VARIANT
    case platform::IsaLevel::kAvxVnni:
    case platform::IsaLevel::kAmx:
      break;
  }
  check_failed("level is built", "no kernels of this level", __FILE__, __LINE__);
}

}  // namespace cicada::kernels
