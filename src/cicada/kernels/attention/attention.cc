#include "cicada/kernels/attention/attention.h"

#include "cicada/kernels/variants.h"

namespace cicada::kernels {

#define CICADA_VARIANT(name, level) extern const AttentionKernels attention_kernels_##name;
#include "cicada/kernels/attention/variants.inc"
#undef CICADA_VARIANT

const AttentionKernels& attention_kernels(platform::IsaLevel level) {
  static constexpr Variant<AttentionKernels> kVariants[] = {
#define CICADA_VARIANT(name, level) {platform::IsaLevel::level, &attention_kernels_##name},
#include "cicada/kernels/attention/variants.inc"
#undef CICADA_VARIANT
  };
  return choose(kVariants, level);
}

}  // namespace cicada::kernels
