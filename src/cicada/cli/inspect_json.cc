#include "cicada/cli/inspect_print.h"
#include "cicada/json/writer.h"
#include "cicada/model/rope_range.h"

namespace cicada::cli {
namespace {

void write_strings(json::Writer& writer, std::string_view key,
                   const std::vector<std::string>& values) {
  writer.key(key).begin_array();
  for (const std::string& value : values) writer.string(value);
  writer.end_array();
}

void write_parts(json::Writer& writer, const PartCounts& parts) {
  writer.key("parts").begin_object();
  for (const model::Part part : kParts) {
    const PartCount& count = parts[static_cast<std::size_t>(part)];
    if (count.expected == 0 && count.found == 0) continue;
    writer.key(model::part_name(part))
        .begin_object()
        .field("expected", count.expected)
        .field("found", count.found)
        .field("bytes", count.bytes)
        .end_object();
  }
  writer.end_object();
}

void write_config(json::Writer& writer, const model::Config& config) {
  writer.key("config")
      .begin_object()
      .field("layers", config.num_layers)
      .field("hidden", config.hidden)
      .field("ffn", config.ffn)
      .field("heads", config.num_heads)
      .field("kv_heads", config.num_kv_heads)
      .field("head_dim", config.head_dim)
      .field("vocab", config.vocab)
      .field("context", config.trained_context)
      .field("tied", config.is_tied);
  if (const auto range = model::rope_range(config)) writer.field("rope_context", *range);
  writer.end_object();
}

// A rank that could not be computed is null and says why.
void write_study(json::Writer& writer, const TensorStudy& study) {
  writer.field("zeros", study.zeros).field("norm", study.norm);
  if (study.rank) {
    writer.field("rank", *study.rank);
    return;
  }
  writer.key("rank").null().field("rank_note", study.rank_note);
}

// Piece by piece: a file may name very many.
void print_tensors(json::Writer& writer, const Inspection& inspection, Output& output) {
  writer.key("tensors").begin_array();
  const std::vector<formats::TensorInfo>& tensors = inspection.file.tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    writer.begin_object().field("name", tensors[i].name).key("shape").begin_array();
    for (const std::uint64_t dim : tensors[i].shape) writer.number(dim);
    writer.end_array()
        .field("dtype", tensor::name(tensors[i].dtype))
        .field("bytes", tensors[i].size_bytes);
    if (inspection.studies) write_study(writer, (*inspection.studies)[i]);
    writer.end_object();
    output.write(writer.take());
  }
  writer.end_array();
}

void write_layers(json::Writer& writer, const InspectReport& report) {
  writer.key("layers").begin_array();
  for (std::size_t i = 0; i < report.layers.size(); ++i) {
    const LayerReport& layer = report.layers[i];
    const PartCount total = layer.total();
    writer.begin_object()
        .field("index", i)
        .field("parameters", total.found)
        .field("parameters_expected", total.expected)
        .field("bytes", total.bytes);
    write_parts(writer, layer.parts);
    writer.key("zero")
        .begin_object()
        .field("attention", layer.is_attention_zero)
        .field("feed_forward", layer.is_feed_forward_zero)
        .field("position", layer.is_position_zero)
        .end_object()
        .field("window", layer.window)
        .field("rope_base", layer.rope_base)
        .end_object();
  }
  writer.end_array();
}

void write_plan(json::Writer& writer, const PlanReport& plan) {
  writer.key("plan").begin_array();
  for (const PlanRow& row : plan.rows) {
    writer.begin_object().field("name", row.name).field("kind", row.kind);
    writer.key("tensors").begin_array();
    for (const PlanTensor& tensor : row.tensors) {
      writer.begin_object().field("name", tensor.name).field("dtype", tensor.dtype);
      if (!tensor.input.empty()) {
        writer.field("input_format", tensor.input)
            .field("prefill_input_format", tensor.prefill_input);
      }
      writer.field("rows", tensor.rows).field("columns", tensor.columns).end_object();
    }
    writer.end_array();
    if (!row.prepares.empty()) writer.field("prepares", row.prepares);
    writer.field("kernel_level", plan.level)
        .field("weight_bytes", row.weight_bytes)
        .field("barrier", row.barrier)
        .end_object();
  }
  writer.end_array();
  writer.key("plan_totals")
      .begin_object()
      .field("steps", plan.rows.size())
      .field("barriers", plan.barriers)
      .field("bytes_per_token", plan.bytes_per_token)
      .field("kernel_level", plan.level)
      .field("numerics_id", plan.numerics_id);
  write_strings(writer, "elided", plan.elided);
  writer.end_object();
}

}  // namespace

void print_json(const Inspection& inspection, Output& output) {
  const InspectReport& report = inspection.report;
  json::Writer writer;
  writer.begin_object()
      .field("path", inspection.file.path())
      .field("architecture", report.architecture)
      .field("runnable", report.is_runnable())
      .field("parameters", report.parameters)
      .field("bytes", inspection.file.size_bytes())
      .field("tensor_bytes", report.tensor_bytes)
      .field("sha256", inspection.sha256);
  if (report.config) write_config(writer, *report.config);
  if (!report.is_runnable()) writer.field("refusal", report.refusal);
  write_parts(writer, report.parts);
  print_tensors(writer, inspection, output);
  write_layers(writer, report);
  write_strings(writer, "zeroed_layers", report.zeroed_layers);
  write_strings(writer, "missing", report.audit.missing);
  write_strings(writer, "extra", report.audit.extra);
  write_strings(writer, "unused", report.audit.unused);
  write_strings(writer, "misshapen", report.audit.misshapen);
  if (inspection.plan) write_plan(writer, *inspection.plan);
  writer.end_object();
  output.write(writer.take());
  output.write("\n");
}

}  // namespace cicada::cli
