// A plain safetensors file with config.json beside it, in GGUF's vocabulary. Rules and names:
// docs/formats/safetensors.md.

#include <algorithm>

#include "cicada/formats/gguf_layout.h"
#include "cicada/formats/hf_config.h"
#include "cicada/formats/hf_names.h"
#include "cicada/formats/model_file.h"
#include "cicada/formats/quote.h"
#include "cicada/formats/safetensors_layout.h"

namespace cicada::formats {
namespace {

constexpr std::uint64_t kMaxConfigBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kMaxSidecarBytes = std::uint64_t{1}
                                           << 26;  // the largest vocabularies: 2^24

// "model-00001-of-00003.safetensors" is a part of a checkpoint, whose other tensors are elsewhere.
Result<void> refuse_shard(std::string_view path) {
  constexpr std::string_view kEnding = ".safetensors";
  if (!path.ends_with(kEnding)) return {};
  path.remove_suffix(kEnding.size());
  const std::size_t of = path.rfind("-of-");
  if (of == std::string_view::npos) return {};
  const std::string_view parts = path.substr(of + 4);
  const bool is_number = !parts.empty() && std::all_of(parts.begin(), parts.end(),
                                                       [](char c) { return c >= '0' && c <= '9'; });
  if (!is_number || parts.find_first_not_of('0') == std::string_view::npos) return {};
  if (parts.substr(parts.find_first_not_of('0')) == "1") return {};
  return fail(Code::kUnsupported, "one of {} parts; only single-file checkpoints are read", parts);
}

// Buffers that a checkpoint carries along and nobody needs: they follow from the configuration.
bool is_derived(std::string_view name) { return name.ends_with(".rotary_emb.inv_freq"); }

// GGUF's names; names that are not known stay, so that an inspection shows them as extra.
void translate_names(std::vector<TensorInfo>& tensors) {
  std::erase_if(tensors, [](const TensorInfo& tensor) { return is_derived(tensor.name); });
  for (TensorInfo& tensor : tensors) {
    if (auto name = hf_to_gguf_name(tensor.name)) tensor.name = *std::move(name);
  }
}

// In GGUF a missing output.weight means that the embedding is used; config.json says so aloud.
Result<void> apply_tie(std::vector<TensorInfo>& tensors, bool is_tied) {
  const auto is_output = [](const TensorInfo& tensor) { return tensor.name == "output.weight"; };
  if (is_tied) {
    std::erase_if(tensors, is_output);
  } else if (std::none_of(tensors.begin(), tensors.end(), is_output)) {
    return fail(
        Code::kCorrupt,
        "tensor lm_head.weight: is missing, and tie_word_embeddings of config.json is not true");
  }
  return {};
}

// The metadata-only GGUF that `convert` leaves beside its safetensors files: what config.json has
// no words for (the tokenizer). Nothing when there is none.
Result<std::shared_ptr<const std::vector<std::byte>>> read_sidecar(const std::string& path) {
  auto file = platform::MappedFile::open(path);
  if (!file && file.error().code() == Code::kNotFound) return nullptr;
  if (!file) return fail(std::move(file).error());
  if (file->bytes().size() > kMaxSidecarBytes) {
    return fail(Code::kCorrupt, "{}: {} bytes, at most {}", kSidecarName, file->bytes().size(),
                kMaxSidecarBytes);
  }
  return std::make_shared<const std::vector<std::byte>>(file->bytes().begin(), file->bytes().end());
}

// Adds the sidecar's keys to those of config.json, which has the last word.
Result<void> add_sidecar(Metadata& metadata, std::span<const std::byte> bytes) {
  auto parts = parse_gguf(bytes);
  if (!parts) return fail(std::move(parts).error().with_context(std::string(kSidecarName)));
  CICADA_ASSIGN(const auto ours, metadata.get_string("general.architecture"));
  CICADA_ASSIGN(const auto theirs, parts->metadata.get_string("general.architecture"));
  if (ours != theirs) {
    return fail(Code::kCorrupt, "{}: describes architecture {}, config.json {}", kSidecarName,
                quote(theirs.value_or("(none)")), quote(ours.value_or("(none)")));
  }
  for (const auto& [key, value] : parts->metadata.values()) {
    if (metadata.find(key) == nullptr) metadata.set(key, value);
  }
  return {};
}

}  // namespace

Result<ModelFile> read_safetensors(platform::MappedFile file) {
  const std::string& path = file.path();
  CICADA_TRY(refuse_shard(path));
  CICADA_ASSIGN(auto tensors, parse_safetensors(file.bytes()));
  CICADA_ASSIGN(const std::string config_text,
                platform::read_file(beside(path, kConfigName), kMaxConfigBytes));
  CICADA_ASSIGN(HfConfig config, read_hf_config(config_text));
  translate_names(tensors);
  CICADA_TRY(apply_tie(tensors, config.ties_output_to_embedding));
  CICADA_ASSIGN(auto sidecar, read_sidecar(beside(path, kSidecarName)));
  if (sidecar != nullptr) CICADA_TRY(add_sidecar(config.metadata, *sidecar));

  ModelFile model(std::move(file));
  model.container_ = Container::kSafetensors;
  model.metadata_ = std::move(config.metadata);
  model.tensors_ = std::move(tensors);
  model.owned_ = std::move(sidecar);
  CICADA_TRY(model.index_tensors());
  return model;
}

}  // namespace cicada::formats
