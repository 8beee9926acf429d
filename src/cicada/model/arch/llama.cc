// Llama, Mistral, SmolLM2: pre-norm blocks, grouped heads, SwiGLU. GGUF keeps q and k rows in the
// interleaved order of its first readers.
#include "cicada/model/arch/architectures.h"

namespace cicada::model {

Config read_llama(ConfigReader& reader) {
  Config c = reader.common();
  c.rope_layout = reader.file().llama_rope_layout();
  if (reader.has("expert_count") && reader.count("expert_count", 0, 1U << 16) > 0) {
    reader.refuse(
        Error(Code::kUnsupported, "llama with experts (mixture of experts) is not built"));
  }
  return c;
}

}  // namespace cicada::model
