#include "cicada/kernels/attention/body-inl.h"

namespace cicada::kernels {

extern const AttentionKernels attention_kernels_scalar;
const AttentionKernels attention_kernels_scalar = {
    .attend = attend, .merge = merge, .finish = finish};

}  // namespace cicada::kernels
