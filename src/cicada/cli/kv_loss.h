// Keeps answers away from a KV cache that costs a model too much: the loss is measured once for a
// file and a type, and remembered.
#pragma once

#include <optional>

#include "cicada/base/result.h"
#include "cicada/cli/common.h"
#include "cicada/cli/kv_option.h"

namespace cicada::cli {

// What the model's KV format costs it, in nats a token of divergence from f16; nothing with f16.
// Errors: kInvalidArgument with the figure when it is more than engine::kMostKvLoss and was not
// forced; kCancelled; those of the measurement.
Result<std::optional<double>> check_kv_loss(const LoadedModel& loaded,
                                            const KvArguments& arguments);

}  // namespace cicada::cli
