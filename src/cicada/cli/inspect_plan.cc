#include "cicada/cli/inspect_plan.h"

#include <fmt/format.h>

namespace cicada::cli {
namespace {

using model::Step;
using model::StepKind;

std::string form_names(const model::PreparedForms& forms) {
  std::string names;
  const auto add = [&names](bool is_made, kernels::InputFormat format) {
    if (!is_made) return;
    if (!names.empty()) names += "+";
    names += kernels::input_format_name(format);
  };
  add(forms.int8, kernels::InputFormat::kInt8);
  add(forms.int15, kernels::InputFormat::kInt15);
  add(forms.f32, kernels::InputFormat::kF32);
  add(forms.bf16, kernels::InputFormat::kBF16);
  return names;
}

// "bf16 or int8/32": of rows of the prefill role, or of the decode role.
std::string prepared_forms(const Step& step) {
  const std::string decode = form_names(step.forms);
  return step.splits_roles ? form_names(step.prefill_forms) + " or " + decode : decode;
}

// Norms of heads and factors of RoPE are read by the step that turns q and k.
std::uint64_t vector_bytes(const Step& step) {
  std::uint64_t elements = step.gain.size();
  for (const model::Product& product : step.products) {
    if (product.bias != nullptr) elements += product.w.rows;
  }
  if (step.kind == StepKind::kRotateAndStore) {
    elements += step.weights->q_norm.size() + step.weights->k_norm.size();
  }
  return elements * sizeof(float);
}

PlanRow report_step(const Step& step, const model::Model& model) {
  PlanRow row{.name = step.name,
              .kind = model::step_kind_name(step.kind),
              .tensors = {},
              .prepares = prepared_forms(step),
              .weight_bytes = step.weight_bytes() + vector_bytes(step),
              .barrier = step.barrier_after};
  for (const model::Product& product : step.products) {
    row.tensors.push_back(
        {product.tensor, tensor::name(product.w.dtype), kernels::input_format_name(product.input),
         kernels::input_format_name(product.prefill_input), product.w.rows, product.w.columns});
  }
  if (step.kind == StepKind::kEmbed) {
    const kernels::PackedWeights& table = model.weights().embedding();
    row.tensors.push_back(
        {"token_embd.weight", tensor::name(table.dtype), "", "", table.rows, table.columns});
    row.weight_bytes += tensor::row_bytes(table.dtype, table.columns);
  }
  return row;
}

}  // namespace

PlanReport report_plan(const model::Model& model) {
  PlanReport report;
  for (const Step& step : model.plan().steps) {
    PlanRow row = report_step(step, model);
    report.bytes_per_token += row.weight_bytes;
    report.barriers += row.barrier ? 1 : 0;
    report.rows.push_back(std::move(row));
  }
  report.elided = model.plan().elided;
  report.numerics_id = model.numerics_id();
  report.level = platform::name(model.level());
  return report;
}

}  // namespace cicada::cli
