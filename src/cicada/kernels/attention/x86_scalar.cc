#include "cicada/kernels/attention/body-inl.h"

namespace cicada::kernels {

extern const AttentionKernels attention_kernels_scalar;
const AttentionKernels attention_kernels_scalar = {.attend = attend,
                                                   .pack_query = pack_query,
                                                   .bound_keys = bound_keys,
                                                   .score_bounds = score_bounds,
                                                   .merge = merge,
                                                   .finish = finish,
                                                   .store_key = store_key,
                                                   .store_value = store_value};

}  // namespace cicada::kernels
