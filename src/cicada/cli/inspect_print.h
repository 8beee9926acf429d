// The two faces of `inspect`: JSON for programs, tables for people.
// Names from the file are escaped in tables (formats/quote.h) and exact in JSON.
// Threads: one thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cicada/cli/inspect_deep.h"
#include "cicada/cli/inspect_plan.h"
#include "cicada/cli/inspect_report.h"
#include "cicada/cli/output.h"
#include "cicada/formats/model_file.h"

namespace cicada::cli {

// Everything to print. Borrows the file for the call.
struct Inspection {
  const formats::ModelFile& file;
  const InspectReport& report;
  const std::string& sha256;
  const std::optional<std::vector<TensorStudy>>& studies;  // [tensors]; with --deep
  const std::optional<PlanReport>& plan;                   // with --plan
};

void print_json(const Inspection& inspection, Output& output);
void print_tables(const Inspection& inspection, Output& output);

}  // namespace cicada::cli
