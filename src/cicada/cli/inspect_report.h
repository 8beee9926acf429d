// What `inspect` knows of a model file before anything is printed.
// Lifetime: names are copies; nothing borrows the file.
// Threads: a value.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cicada/formats/model_file.h"
#include "cicada/model/config.h"
#include "cicada/model/tensors.h"

namespace cicada::cli {

inline constexpr std::array kParts = {model::Part::kEmbedding,   model::Part::kAttention,
                                      model::Part::kFeedForward, model::Part::kNorms,
                                      model::Part::kPosition,    model::Part::kHead};

// Parameters (elements) of one part of the model.
struct PartCount {
  std::uint64_t expected = 0;  // that the configuration calls for
  std::uint64_t found = 0;     // in the tensors of those names
  std::uint64_t bytes = 0;     // of those tensors in the file

  PartCount& operator+=(const PartCount& other);
};

// By Part.
using PartCounts = std::array<PartCount, kParts.size()>;

struct LayerReport {
  PartCounts parts;
  std::uint32_t window = 0;  // tokens a query sees up to itself; 0: all
  double rope_base = 0.0;
  // Exactly zero in the file, so that the plan leaves it out.
  bool is_attention_zero = false;
  bool is_feed_forward_zero = false;
  bool is_position_zero = false;

  PartCount total() const;
};

struct InspectReport {
  std::string architecture;             // as the file says; empty when it does not
  std::uint64_t parameters = 0;         // elements of all tensors
  std::uint64_t tensor_bytes = 0;       // of all tensors
  std::optional<model::Config> config;  // nothing: it makes no sense or is not known
  std::string refusal;                  // why the file cannot be run, a sentence; empty: it can
  PartCounts parts = {};                // with config, as is what follows
  std::vector<LayerReport> layers;
  std::vector<std::string> zeroed_layers;  // named as model::Plan::elided names them
  model::TensorAudit audit;                // without config only token_embd.weight can be missing

  bool is_runnable() const { return refusal.empty(); }
};

// Reads the configuration and looks at the tensors that could be exactly zero. A file that cannot
// be run still gets a report.
InspectReport inspect_file(const formats::ModelFile& file);

}  // namespace cicada::cli
