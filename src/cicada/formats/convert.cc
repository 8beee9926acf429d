#include "cicada/formats/convert.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "cicada/formats/convert_tensor.h"
#include "cicada/formats/gguf_writer.h"
#include "cicada/formats/hf_config.h"
#include "cicada/formats/hf_names.h"
#include "cicada/formats/quote.h"
#include "cicada/formats/safetensors_layout.h"
#include "cicada/formats/safetensors_writer.h"
#include "cicada/json/parse.h"
#include "cicada/platform/file.h"
#include "cicada/tensor/quantize.h"

namespace cicada::formats {
namespace {

using platform::AtomicFileWriter;
using tensor::DType;

// Everything decided before the first byte is written. `out[i]` is made from `work[i]`.
struct Plan {
  Container to = Container::kGguf;
  std::vector<TensorInfo> out;  // offset_bytes is not used
  std::vector<TensorWork> work;
  std::vector<ConvertedTensor> report;
  std::uint64_t total_bytes = 0;
};

bool is_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

Result<Container> container_by_ending(std::string_view path) {
  if (path.ends_with(".gguf")) return Container::kGguf;
  if (path.ends_with(".safetensors")) return Container::kSafetensors;
  return fail(Code::kInvalidArgument, "output {}: its name must end in .gguf or .safetensors",
              quote(path));
}

Result<void> refuse_same_file(const std::string& input, const std::string& output) {
  std::error_code ignored;  // a missing output is not the same file
  if (input != output && !std::filesystem::equivalent(input, output, ignored)) return {};
  return fail(Code::kInvalidArgument, "{}: is both input and output", quote(output));
}

Result<void> check_type(const std::optional<DType>& type, Container to) {
  if (!type) return {};
  if (!tensor::can_quantize(*type)) {
    return fail(Code::kUnsupported, "type {} cannot be written; supported: f32 f16 bf16 q8_0 q4_0",
                tensor::name(*type));
  }
  if (to == Container::kSafetensors && !is_float(*type)) {
    return fail(Code::kUnsupported,
                "type {} cannot be written as safetensors; supported: f32 f16 bf16",
                tensor::name(*type));
  }
  return {};
}

// Norms, biases and other vectors, and the relative-position table, which is a bias by head: small,
// added to sums, and read by kernels as float32.
bool stays_f32(const TensorInfo& tensor) {
  return tensor.shape.size() == 1 || tensor.num_rows() == 1 ||
         tensor.name.ends_with(".rel_pos_proj.weight");
}

DType output_type(const TensorInfo& tensor, const std::optional<DType>& asked, Container to,
                  bool& fell_back) {
  if (stays_f32(tensor)) return DType::kF32;
  if (!asked) {
    return to == Container::kSafetensors && !is_float(tensor.dtype) ? DType::kF32 : tensor.dtype;
  }
  fell_back = tensor.row_elements() % tensor::info(*asked).block_elements != 0;
  return fell_back ? DType::kF16 : *asked;
}

Result<RowOrder> row_order(const TensorInfo& tensor, Container from, Container to,
                           std::uint64_t head_dim) {
  if (from == to || !has_rope_rows(tensor.name)) return RowOrder::kKeep;
  const std::uint64_t rows = tensor.shape.front();
  if (tensor.shape.size() > 2 || rows % head_dim != 0) {
    return fail(Code::kCorrupt, "tensor {}: {} rows are not whole heads of {}", quote(tensor.name),
                rows, head_dim);
  }
  return to == Container::kGguf ? RowOrder::kToInterleaved : RowOrder::kToHalves;
}

Result<std::string> output_name(const TensorInfo& tensor, Container to) {
  if (to == Container::kGguf) return tensor.name;
  auto name = gguf_to_hf_name(tensor.name);
  if (name) return *std::move(name);
  return fail(Code::kUnsupported, "tensor {}: has no name in a safetensors checkpoint",
              quote(tensor.name));
}

// Wider elements first, so that everything in a safetensors file is aligned to its type.
std::vector<const TensorInfo*> output_order(const ModelFile& in, const ConvertOptions& options,
                                            Container to) {
  std::vector<const TensorInfo*> order;
  for (const TensorInfo& tensor : in.tensors()) order.push_back(&tensor);
  if (to == Container::kGguf) return order;
  const auto is_wide = [&options, to](const TensorInfo* tensor) {
    bool fell_back = false;
    return output_type(*tensor, options.type, to, fell_back) == DType::kF32;
  };
  std::stable_partition(order.begin(), order.end(), is_wide);
  return order;
}

Result<Plan> make_plan(const ModelFile& in, const ConvertOptions& options, Container to) {
  Plan plan;
  plan.to = to;
  std::uint64_t head_dim = 0;
  if (in.container() != to) {
    CICADA_ASSIGN(const auto architecture, hf_architecture(in.metadata()));
    CICADA_ASSIGN(head_dim, llama_head_dim(in.metadata(), architecture));
  }
  for (const TensorInfo* input : output_order(in, options, to)) {
    const TensorInfo& tensor = *input;
    TensorInfo out = tensor;
    ConvertedTensor entry;
    CICADA_ASSIGN(out.name, output_name(tensor, to));
    out.dtype = output_type(tensor, options.type, to, entry.fell_back);
    CICADA_ASSIGN(out.size_bytes, checked_tensor_bytes(out));
    CICADA_ASSIGN(const RowOrder order, row_order(tensor, in.container(), to, head_dim));
    entry.name = out.name;
    entry.from = tensor.dtype;
    entry.to = out.dtype;
    plan.total_bytes += out.size_bytes;
    plan.work.push_back({&tensor, out.dtype, order, head_dim});
    plan.out.push_back(std::move(out));
    plan.report.push_back(std::move(entry));
  }
  return plan;
}

// The type that holds most of the bytes of the output: what the file is named after.
DType main_type(const Plan& plan) {
  std::array<std::uint64_t, tensor::kDTypes.size()> bytes{};
  for (const TensorInfo& tensor : plan.out) {
    bytes[static_cast<std::size_t>(tensor.dtype)] += tensor.size_bytes;
  }
  const auto largest = std::max_element(bytes.begin(), bytes.end());
  return static_cast<DType>(largest - bytes.begin());
}

// GGUF's number for "mostly this type"; nothing where a type has several mixes (K-quants).
std::optional<std::uint64_t> file_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return 0;
    case DType::kF16:
      return 1;
    case DType::kQ4_0:
      return 2;
    case DType::kQ4_1:
      return 3;
    case DType::kQ8_0:
      return 7;
    case DType::kQ5_0:
      return 8;
    case DType::kQ5_1:
      return 9;
    case DType::kBF16:
      return 32;
    default:
      return std::nullopt;
  }
}

Metadata output_metadata(const ModelFile& in, const Plan& plan, bool type_was_asked) {
  Metadata metadata = in.metadata();
  const bool is_new = type_was_asked || in.container() != plan.to;
  const auto type = file_type(main_type(plan));
  if (is_new && type) metadata.set("general.file_type", {MetaType::kU32, *type});
  if (!is_float(main_type(plan))) {
    metadata.set("general.quantization_version", {MetaType::kU32, std::uint64_t{2}});
  }
  return metadata;
}

// Writes tensor data through the plan and reports progress.
class Run {
 public:
  Run(const ModelFile& in, Plan& plan, const ConvertOptions& options)
      : in_(in), plan_(plan), options_(options) {}

  TensorSource source() {
    return [this](std::size_t index, const ByteSink& sink) {
      const ByteSink counted = [this, index, &sink](std::span<const std::byte> bytes) {
        return pass(index, bytes, sink);
      };
      auto done =
          convert_tensor(in_, plan_.work[index], counted, plan_.report[index].num_overflowed);
      in_.drop_pages(*plan_.work[index].in);
      return done;
    };
  }

 private:
  Result<void> pass(std::size_t index, std::span<const std::byte> bytes, const ByteSink& sink) {
    CICADA_TRY(sink(bytes));
    done_bytes_ += bytes.size();
    const ConvertProgress progress{done_bytes_, plan_.total_bytes, plan_.out[index].name};
    if (!options_.progress || options_.progress(progress)) return {};
    return fail(Code::kCancelled, "conversion was stopped");
  }

  const ModelFile& in_;
  Plan& plan_;
  const ConvertOptions& options_;
  std::uint64_t done_bytes_ = 0;
};

Result<HfConfigFacts> config_facts(const ModelFile& in, const Plan& plan, std::string name) {
  HfConfigFacts facts;
  facts.weights_file = std::move(name);
  const TensorInfo* embedding = in.find("token_embd.weight");
  if (embedding == nullptr) return fail(Code::kCorrupt, "tensor token_embd.weight: is missing");
  facts.vocab_size = embedding->num_rows();
  facts.ties_output_to_embedding = in.find("output.weight") == nullptr;
  facts.has_attention_bias = in.find("blk.0.attn_q.bias") != nullptr;
  facts.dtype = main_type(plan);
  return facts;
}

// The name of the file that a config.json of `convert` belongs to; nothing where it is not of
// `convert`.
std::optional<std::string> weights_file_of(std::string_view config_text) {
  const auto document = json::parse(config_text);
  if (!document) return std::nullopt;
  const auto text_of = [&document](std::string_view key) -> std::optional<std::string> {
    const auto element = json::find(document->root(), key, kConfigName).value_or(std::nullopt);
    if (!element) return std::nullopt;
    const auto text = json::as_string(*element, key);
    return text ? std::optional(std::string(*text)) : std::nullopt;
  };
  return text_of(kWrittenByKey) == kWrittenBy ? text_of(kWeightsFileKey) : std::nullopt;
}

// A config.json of somebody else's checkpoint is not overwritten, nor that of another file which
// `convert` wrote and which is still there.
Result<void> refuse_foreign_config(const std::string& path, std::string_view weights_file) {
  constexpr std::uint64_t kMaxConfigBytes = std::uint64_t{1} << 20;
  const auto text = platform::read_file(path, kMaxConfigBytes);
  if (!text && text.error().code() == Code::kNotFound) return {};
  const auto owner = text ? weights_file_of(*text) : std::nullopt;
  if (!owner) {
    return fail(Code::kInvalidArgument,
                "{}: exists and was not written by convert; choose another folder for the output",
                quote(path));
  }
  std::error_code ignored;  // what cannot be looked at is not in use
  if (*owner == weights_file || !std::filesystem::exists(beside(path, *owner), ignored)) return {};
  return fail(Code::kInvalidArgument,
              "{}: exists and belongs to {}; choose another folder for the output", quote(path),
              quote(*owner));
}

Result<std::vector<std::string>> write_gguf_output(const ModelFile& in, Plan& plan,
                                                   const ConvertOptions& options) {
  CICADA_ASSIGN(auto out, AtomicFileWriter::create(options.output_path));
  const Metadata metadata = output_metadata(in, plan, options.type.has_value());
  CICADA_TRY(write_gguf(out, metadata, plan.out, Run(in, plan, options).source()));
  CICADA_TRY(out.finish());
  return std::vector<std::string>{options.output_path};
}

Result<std::vector<std::string>> write_safetensors_output(const ModelFile& in, Plan& plan,
                                                          const ConvertOptions& options) {
  std::vector<std::string> paths = {options.output_path, beside(options.output_path, kConfigName),
                                    beside(options.output_path, kSidecarName)};
  const std::string name = std::filesystem::path(options.output_path).filename().string();
  CICADA_TRY(refuse_foreign_config(paths[1], name));
  CICADA_ASSIGN(const HfConfigFacts facts, config_facts(in, plan, name));
  const Metadata metadata = output_metadata(in, plan, options.type.has_value());
  CICADA_ASSIGN(const std::string config_text, write_hf_config(metadata, facts));
  if (weights_file_of(config_text) != name) {
    return fail(Code::kInvalidArgument, "output {}: its name is not UTF-8, as {} must name it",
                quote(options.output_path), kConfigName);
  }
  // All three are written before the first appears under its name.
  CICADA_ASSIGN(auto model, AtomicFileWriter::create(paths[0]));
  CICADA_ASSIGN(auto config, AtomicFileWriter::create(paths[1]));
  CICADA_ASSIGN(auto sidecar, AtomicFileWriter::create(paths[2]));
  CICADA_TRY(config.write(config_text));
  CICADA_TRY(write_gguf(sidecar, metadata, {}, {}));
  CICADA_TRY(write_safetensors(model, plan.out, Run(in, plan, options).source()));
  CICADA_TRY(config.finish());
  CICADA_TRY(sidecar.finish());
  CICADA_TRY(model.finish());
  return paths;
}

}  // namespace

Result<ConvertReport> convert(const ConvertOptions& options) {
  CICADA_ASSIGN(const Container to, container_by_ending(options.output_path));
  CICADA_TRY(refuse_same_file(options.input_path, options.output_path));
  CICADA_TRY(check_type(options.type, to));
  CICADA_ASSIGN(const ModelFile in, ModelFile::open(options.input_path));
  auto plan = make_plan(in, options, to);
  if (!plan) return fail(std::move(plan).error().with_context(options.input_path));
  ConvertReport report;
  CICADA_ASSIGN(report.files, to == Container::kGguf
                                  ? write_gguf_output(in, *plan, options)
                                  : write_safetensors_output(in, *plan, options));
  report.from = in.container();
  report.to = to;
  report.tensors = std::move(plan->report);
  report.input_bytes = in.size_bytes();
  report.output_bytes = plan->total_bytes;
  return report;
}

}  // namespace cicada::formats
