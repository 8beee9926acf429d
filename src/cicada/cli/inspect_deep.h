// `inspect --deep`: what the numbers of each tensor say.
// Threads: one thread; `progress` is called on the caller's.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/base/result.h"
#include "cicada/formats/model_file.h"

namespace cicada::cli {

struct TensorStudy {
  std::uint64_t zeros = 0;            // elements that are exactly 0, of either sign
  double norm = 0.0;                  // Frobenius; NaN or infinite when an element is
  std::optional<std::uint64_t> rank;  // numerical (gram_rank.h); nothing: see rank_note
  std::string rank_note;              // why there is no rank
};

// `share` done of all work, from 0 to 1; false stops.
using StudyProgress = std::function<bool(std::string_view tensor, double share)>;

// One study for each tensor of the file, in its order. A vector counts as a matrix of one row.
// Errors: kCancelled.
Result<std::vector<TensorStudy>> study_tensors(const formats::ModelFile& file,
                                               const StudyProgress& progress);

}  // namespace cicada::cli
