#include "cicada/cli/inspect_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "cicada/model/weights.h"

namespace cicada::cli {
namespace {

using formats::ModelFile;
using formats::TensorInfo;
using model::layer_tensor;

bool is_zero(const ModelFile& file, const std::string& name) {
  const TensorInfo* tensor = file.find(name);
  return tensor != nullptr && model::is_exactly_zero(file, *tensor);
}

void count_parts(const ModelFile& file, const model::Config& config, InspectReport& report) {
  for (const model::ExpectedTensor& wanted : model::expected_tensors(config)) {
    const TensorInfo* found = file.find(wanted.name);
    if (found == nullptr && wanted.is_optional) continue;
    PartCount count{.expected = wanted.num_elements()};
    if (found != nullptr) {
      count.found = found->num_elements();
      count.bytes = found->size_bytes;
    }
    const auto part = static_cast<std::size_t>(wanted.part);
    report.parts[part] += count;
    if (wanted.layer >= 0) {
      report.layers[static_cast<std::size_t>(wanted.layer)].parts[part] += count;
    }
  }
}

// The same names, in the same order, as the planner gives (model/plan.cc): a test compares them.
void name_zeros(InspectReport& report) {
  std::vector<std::string> tables;
  for (std::size_t i = 0; i < report.layers.size(); ++i) {
    const LayerReport& layer = report.layers[i];
    if (layer.is_attention_zero && layer.is_feed_forward_zero) {
      report.zeroed_layers.push_back(fmt::format("blk.{}", i));
    } else if (layer.is_attention_zero) {
      report.zeroed_layers.push_back(fmt::format("blk.{}.attn", i));
    } else if (layer.is_feed_forward_zero) {
      report.zeroed_layers.push_back(fmt::format("blk.{}.ffn", i));
    }
    if (layer.is_position_zero) tables.push_back(fmt::format("blk.{}.rel_pos_proj", i));
  }
  if (!tables.empty() && tables.size() == report.layers.size()) tables = {"rel_pos_proj"};
  report.zeroed_layers.insert(report.zeroed_layers.end(), tables.begin(), tables.end());
}

void find_zeros(const ModelFile& file, const model::Config& config, InspectReport& report) {
  for (std::uint32_t i = 0; i < config.num_layers; ++i) {
    LayerReport& layer = report.layers[i];
    layer.is_attention_zero = is_zero(file, layer_tensor(i, "attn_output.weight"));
    layer.is_feed_forward_zero = is_zero(file, layer_tensor(i, "ffn_down.weight"));
    layer.is_position_zero =
        config.rel_pos_dim > 0 && is_zero(file, layer_tensor(i, "rel_pos_proj.weight"));
  }
  name_zeros(report);
}

}  // namespace

PartCount& PartCount::operator+=(const PartCount& other) {
  expected += other.expected;
  found += other.found;
  bytes += other.bytes;
  return *this;
}

PartCount LayerReport::total() const {
  PartCount sum;
  for (const PartCount& part : parts) sum += part;
  return sum;
}

InspectReport inspect_file(const ModelFile& file) {
  InspectReport report;
  const auto name = file.metadata().get_string("general.architecture");
  if (name) report.architecture = name->value_or("");
  for (const TensorInfo& tensor : file.tensors()) {
    report.parameters += tensor.num_elements();
    report.tensor_bytes += tensor.size_bytes;
  }
  auto config = model::read_config(file);
  if (!config) {
    report.refusal = config.error().to_string();
    // The one tensor without which there is no configuration: it says how many tokens there are.
    constexpr std::string_view kEmbedding = "token_embd.weight";
    const std::vector<std::string_view> known = model::known_architectures();
    const bool is_known = std::find(known.begin(), known.end(), report.architecture) != known.end();
    if (is_known && file.find(kEmbedding) == nullptr) report.audit.missing.emplace_back(kEmbedding);
    return report;
  }
  for (const model::LayerConfig& layer : config->layers) {
    LayerReport& entry = report.layers.emplace_back();
    entry.window = layer.window;
    entry.rope_base = layer.rope_base;
  }
  count_parts(file, *config, report);
  find_zeros(file, *config, report);
  report.audit = model::audit_tensors(*config, file);
  if (auto complete = model::check_tensors(*config, report.audit); !complete) {
    report.refusal = complete.error().to_string();
  }
  report.config = *std::move(config);
  return report;
}

}  // namespace cicada::cli
