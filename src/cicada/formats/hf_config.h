// config.json of Hugging Face checkpoints of llama shape (model_type llama, mistral) and of
// cicada-v1, as GGUF metadata and back. The table is in docs/formats/safetensors.md, "config.json".
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "cicada/base/result.h"
#include "cicada/formats/metadata.h"
#include "cicada/tensor/dtype.h"

namespace cicada::formats {

struct HfConfig {
  Metadata metadata;  // strings are static
  bool ties_output_to_embedding = false;
};

// Errors: kCorrupt for missing or impossible values, kUnsupported for a model_type, activation or
// RoPE scaling that is not known; each names the key.
Result<HfConfig> read_hf_config(std::string_view json);

// What config.json says beyond metadata.
struct HfConfigFacts {
  std::string weights_file;  // name, without folder, of the file that config.json belongs to
  std::uint64_t vocab_size = 0;
  bool ties_output_to_embedding = false;
  bool has_attention_bias = false;
  tensor::DType dtype = tensor::DType::kF32;  // of the matrices: f32, f16 or bf16
};

// The keys by which a config.json that `convert` wrote, and the file it belongs to, are known.
inline constexpr std::string_view kWrittenByKey = "written_by";
inline constexpr std::string_view kWrittenBy = "cicada convert";
inline constexpr std::string_view kWeightsFileKey = "weights_file";

// general.architecture, where it is one that both containers can hold: llama or cicada-v1.
// Errors: kUnsupported for others.
Result<std::string_view> hf_architecture(const Metadata& metadata);

// Dimension of a head, from GGUF metadata of a llama-like architecture.
// Errors: kCorrupt for missing keys; kUnsupported when RoPE turns only a part of a head.
Result<std::uint64_t> llama_head_dim(const Metadata& metadata, std::string_view architecture);

// The text of a config.json for GGUF metadata of architecture llama or cicada-v1.
// Errors: kUnsupported for other architectures and RoPE scalings; kCorrupt for missing keys.
Result<std::string> write_hf_config(const Metadata& metadata, const HfConfigFacts& facts);

}  // namespace cicada::formats
