// The tensors that a configuration calls for: the one list behind loading, `inspect` and
// accounting.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cicada/base/result.h"
#include "cicada/formats/model_file.h"
#include "cicada/model/config.h"

namespace cicada::model {

// Parts that parameters are counted by.
enum class Part : std::uint8_t { kEmbedding, kAttention, kFeedForward, kNorms, kPosition, kHead };
std::string_view part_name(Part part);

struct ExpectedTensor {
  std::string name;
  std::vector<std::uint64_t> shape;  // outermost first
  Part part = Part::kEmbedding;
  std::int32_t layer = -1;  // -1: not in a layer
  bool is_optional = false;

  std::uint64_t num_elements() const;
};

// Every tensor the plan may read, in file order of a usual converter.
std::vector<ExpectedTensor> expected_tensors(const Config& config);

// What a file has against what its configuration calls for.
struct TensorAudit {
  std::vector<std::string> missing;    // called for, not optional, not there
  std::vector<std::string> extra;      // there, not called for: another model's
  std::vector<std::string> unused;     // there, but they follow from the configuration: ignored
  std::vector<std::string> misshapen;  // sentences: name, shape found, shape needed
};
TensorAudit audit_tensors(const Config& config, const formats::ModelFile& file);

// Nothing when the tensors are exactly those of the configured model, optional and unused ones
// aside. Errors, each naming tensors: kCorrupt for misshapen and missing ones; kUnsupported for
// extra ones, because what would be computed without them is another model.
Result<void> check_tensors(const Config& config, const TensorAudit& audit);

// "blk.<layer>.<name>".
std::string layer_tensor(std::uint32_t layer, std::string_view name);

}  // namespace cicada::model
