// The order of q and k rows in the two containers. A head of d rows holds d/2 pairs that RoPE
// turns: Hugging Face checkpoints keep first halves and second halves apart, llama's GGUF files
// interleave them. Mapping and example: docs/formats/safetensors.md, "Rows of q and k". Threads:
// pure functions.
#pragma once

#include <cstdint>
#include <string_view>

namespace cicada::formats {

enum class RowOrder : std::uint8_t {
  kKeep,
  kToInterleaved,  // safetensors -> GGUF
  kToHalves,       // GGUF -> safetensors
};

// The row of the input that becomes row `row` of the output. `head_dim` is even and counts rows.
std::uint64_t source_row(RowOrder order, std::uint64_t head_dim, std::uint64_t row);

// True for the tensors whose rows are ordered for RoPE: blk.N.attn_q and attn_k, weights and
// biases.
bool has_rope_rows(std::string_view gguf_name);

}  // namespace cicada::formats
