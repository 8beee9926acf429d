// `inspect --plan`: the steps of a loaded model's plan as rows to print.
// Threads: a value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/model/model.h"

namespace cicada::cli {

struct PlanTensor {
  std::string name;
  std::string_view dtype;
  std::string_view input;  // form of the input it is multiplied with; empty: it is looked up
  std::string_view prefill_input;  // the same for rows of the prefill role
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
};

struct PlanRow {
  std::string name;
  std::string_view kind;
  std::vector<PlanTensor> tensors;
  std::string prepares;            // forms of input that the step makes: "int8/32", "int8/32+f32"
  std::uint64_t weight_bytes = 0;  // read for one token, in memory's layout, with gains and biases
  bool barrier = false;
};

struct PlanReport {
  std::vector<PlanRow> rows;
  std::vector<std::string> elided;
  std::string numerics_id;
  std::string_view level;  // of the kernels
  std::uint64_t barriers = 0;
  std::uint64_t bytes_per_token = 0;  // weights read to decode one token; the KV cache comes on top
};

PlanReport report_plan(const model::Model& model);

}  // namespace cicada::cli
