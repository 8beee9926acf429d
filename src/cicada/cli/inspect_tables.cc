#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cicada/cli/inspect_print.h"
#include "cicada/cli/printable.h"
#include "cicada/cli/table.h"
#include "cicada/formats/quote.h"
#include "cicada/model/rope_range.h"
#include "cicada/platform/terminal.h"

namespace cicada::cli {
namespace {

using formats::quote;

std::string container_line(const formats::ModelFile& file) {
  if (file.container() == formats::Container::kSafetensors) return "safetensors";
  return fmt::format("GGUF version {}", file.version());
}

std::string config_line(const model::Config& c) {
  return fmt::format("{}, hidden {}, {} of {} over {}, feed-forward {}, vocabulary {}, {} head",
                     counted(c.num_layers, "layer"), c.hidden, counted(c.num_heads, "head"),
                     c.head_dim, counted(c.num_kv_heads, "KV head"), c.ffn, c.vocab,
                     c.is_tied ? "tied" : "own");
}

// What the file claims, and what its RoPE bases support by the published bound.
std::string context_line(const model::Config& config) {
  const std::optional<std::uint64_t> range = model::rope_range(config);
  std::string line = fmt::format("trained for {} tokens", grouped(config.trained_context));
  if (range) line += fmt::format(", RoPE supports {}", grouped(*range));
  return line;
}

std::string summary(const Inspection& inspection) {
  const InspectReport& report = inspection.report;
  std::string text = fmt::format(
      "file          {}\nformat        {}\narchitecture  {}\n", printable(inspection.file.path()),
      container_line(inspection.file),
      report.architecture.empty() ? "not named in the file" : quote(report.architecture));
  if (report.config) {
    text += fmt::format("model         {}\ncontext       {}\n", config_line(*report.config),
                        context_line(*report.config));
  }
  text +=
      fmt::format("parameters    {} in {}\nbytes         {} ({})\nsha256        {}\n",
                  grouped(report.parameters), counted(inspection.file.tensors().size(), "tensor"),
                  grouped(inspection.file.size_bytes()),
                  platform::format_bytes(inspection.file.size_bytes()), inspection.sha256);
  if (!report.is_runnable())
    text += fmt::format("\ncannot be run: {}\n", printable(report.refusal));
  return text;
}

std::string parts_table(const InspectReport& report) {
  Table table(
      {{"part"}, {"expected", Align::kRight}, {"found", Align::kRight}, {"bytes", Align::kRight}});
  PartCount total;
  for (const model::Part part : kParts) {
    const PartCount& count = report.parts[static_cast<std::size_t>(part)];
    if (count.expected == 0 && count.found == 0) continue;
    table.add({std::string(model::part_name(part)), grouped(count.expected), grouped(count.found),
               grouped(count.bytes)});
    total += count;
  }
  table.add({"all", grouped(total.expected), grouped(total.found), grouped(total.bytes)});
  return "\nParameters by part\n" + table.text();
}

std::string zero_flags(const LayerReport& layer) {
  std::vector<std::string_view> flags;
  if (layer.is_attention_zero) flags.emplace_back("attention");
  if (layer.is_feed_forward_zero) flags.emplace_back("feed-forward");
  if (layer.is_position_zero) flags.emplace_back("position");
  return flags.empty() ? "-" : fmt::format("{}", fmt::join(flags, "+"));
}

std::string layers_table(const InspectReport& report) {
  Table table({{"layer", Align::kRight},
               {"attention", Align::kRight},
               {"feed-forward", Align::kRight},
               {"norms", Align::kRight},
               {"position", Align::kRight},
               {"bytes", Align::kRight},
               {"window", Align::kRight},
               {"rope base", Align::kRight},
               {"zero"}});
  for (std::size_t i = 0; i < report.layers.size(); ++i) {
    const LayerReport& layer = report.layers[i];
    const auto found = [&layer](model::Part part) {
      return grouped(layer.parts[static_cast<std::size_t>(part)].found);
    };
    table.add({fmt::format("{}", i), found(model::Part::kAttention),
               found(model::Part::kFeedForward), found(model::Part::kNorms),
               found(model::Part::kPosition), grouped(layer.total().bytes),
               layer.window == 0 ? "all" : grouped(layer.window),
               fmt::format("{:g}", layer.rope_base), zero_flags(layer)});
  }
  return "\nLayers (parameters found)\n" + table.text();
}

std::string tensors_table(const Inspection& inspection) {
  std::vector<Column> columns = {
      {"tensor"}, {"shape", Align::kRight}, {"dtype"}, {"bytes", Align::kRight}};
  if (inspection.studies) {
    columns.push_back({"zeros", Align::kRight});
    columns.push_back({"norm", Align::kRight});
    columns.push_back({"rank"});
  }
  Table table(std::move(columns));
  const std::vector<formats::TensorInfo>& tensors = inspection.file.tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const formats::TensorInfo& tensor = tensors[i];
    std::vector<std::string> cells = {
        quote(tensor.name), fmt::format("{}", fmt::join(tensor.shape, " x ")),
        std::string(tensor::name(tensor.dtype)), grouped(tensor.size_bytes)};
    if (inspection.studies) {
      const TensorStudy& study = (*inspection.studies)[i];
      cells.push_back(grouped(study.zeros));
      cells.push_back(fmt::format("{:.6g}", study.norm));
      cells.push_back(study.rank ? fmt::format("{}", *study.rank) : "- (" + study.rank_note + ")");
    }
    table.add(std::move(cells));
  }
  return "\nTensors (shape outermost first)\n" + table.text();
}

std::string plan_table(const PlanReport& plan) {
  Table table({{"step", Align::kRight},
               {"name"},
               {"kind"},
               {"tensors"},
               {"input"},
               {"kernels"},
               {"weight bytes", Align::kRight},
               {"barrier"}});
  for (std::size_t i = 0; i < plan.rows.size(); ++i) {
    const PlanRow& row = plan.rows[i];
    std::vector<std::string> tensors;
    std::string input = row.prepares.empty() ? "" : "to " + row.prepares;
    for (const PlanTensor& tensor : row.tensors) {
      tensors.push_back(fmt::format("{} {}", tensor.name, tensor.dtype));
      for (const std::string_view format : {tensor.prefill_input, tensor.input}) {
        const bool is_new = input.find(format) == std::string::npos;
        if (is_new) input += (input.empty() ? "" : "+") + std::string(format);
      }
    }
    table.add({fmt::format("{}", i), row.name, std::string(row.kind),
               fmt::format("{}", fmt::join(tensors, ", ")), input, std::string(plan.level),
               row.weight_bytes == 0 ? "" : grouped(row.weight_bytes), row.barrier ? "yes" : ""});
  }
  return "\nPlan\n" + table.text() +
         fmt::format(
             "\nweights read for one token  {} ({}), in memory's layout; the KV cache comes on "
             "top\nsteps                       {}, {}\nelided                      {}\n"
             "numerics_id                 {}\n",
             grouped(plan.bytes_per_token), platform::format_bytes(plan.bytes_per_token),
             plan.rows.size(), counted(plan.barriers, "barrier"),
             plan.elided.empty() ? "nothing" : fmt::format("{}", fmt::join(plan.elided, ", ")),
             plan.numerics_id);
}

void print_list(std::string_view title, const std::vector<std::string>& names, Output& output) {
  if (names.empty()) return;
  output.write(fmt::format("\n{}\n", title));
  for (const std::string& name : names) output.write(quote(name) + "\n");
}

}  // namespace

void print_tables(const Inspection& inspection, Output& output) {
  const InspectReport& report = inspection.report;
  output.write(summary(inspection));
  if (report.config) {
    output.write(parts_table(report));
    output.write(layers_table(report));
  }
  if (!inspection.file.tensors().empty()) output.write(tensors_table(inspection));
  print_list("Exactly zero, not in the plan", report.zeroed_layers, output);
  print_list("Missing tensors", report.audit.missing, output);
  print_list("Tensors of another shape than the configuration calls for", report.audit.misshapen,
             output);
  print_list("Tensors that are not part of the configured model", report.audit.extra, output);
  print_list("Tensors that nothing reads (ignored)", report.audit.unused, output);
  if (inspection.plan) output.write(plan_table(*inspection.plan));
}

}  // namespace cicada::cli
