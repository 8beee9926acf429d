// Tensor names of Hugging Face checkpoints of llama shape, and of cicada-v1, in GGUF's vocabulary.
// The table is in docs/formats/safetensors.md, "Names".
// Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cicada::formats {

// "model.layers.3.self_attn.q_proj.weight" -> "blk.3.attn_q.weight"; nothing for unknown names.
std::optional<std::string> hf_to_gguf_name(std::string_view name);

// The way back. Nothing for names without a counterpart.
std::optional<std::string> gguf_to_hf_name(std::string_view name);

}  // namespace cicada::formats
