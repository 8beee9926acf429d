#include "cicada/formats/rope_rows.h"

namespace cicada::formats {

std::uint64_t source_row(RowOrder order, std::uint64_t head_dim, std::uint64_t row) {
  const std::uint64_t head_begin = row / head_dim * head_dim;
  const std::uint64_t r = row % head_dim;
  const std::uint64_t half = head_dim / 2;
  switch (order) {
    case RowOrder::kToInterleaved:  // row 2i + s comes from s·d/2 + i
      return head_begin + r % 2 * half + r / 2;
    case RowOrder::kToHalves:  // row s·d/2 + i comes from 2i + s
      return head_begin + r % half * 2 + r / half;
    case RowOrder::kKeep:
      break;
  }
  return row;
}

bool has_rope_rows(std::string_view gguf_name) {
  if (!gguf_name.starts_with("blk.")) return false;
  for (const std::string_view ending :
       {".attn_q.weight", ".attn_k.weight", ".attn_q.bias", ".attn_k.bias"}) {
    if (gguf_name.ends_with(ending)) return true;
  }
  return false;
}

}  // namespace cicada::formats
