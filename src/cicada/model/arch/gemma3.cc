// Gemma 3: norms before and after each part, norms on the heads of q and k, GELU, scaled
// embeddings, and five of six layers with a sliding window and a RoPE base of their own. GGUF
// stores the gains with the 1 already added.
#include <cmath>

#include "cicada/model/arch/architectures.h"

namespace cicada::model {
namespace {

constexpr double kLocalRopeBase = 10000.0;
constexpr std::uint32_t kDefaultPattern = 6;
// The 27B model alone scales queries by its width per head instead of the head's size.
constexpr std::uint32_t kLayersOf27B = 62;

}  // namespace

Config read_gemma3(ConfigReader& reader) {
  Config c = reader.common();
  c.has_qk_norm = true;
  c.has_post_norms = true;
  c.activation = kernels::Activation::kGeluTanh;
  c.embedding_scale = std::sqrt(static_cast<float>(c.hidden));
  if (c.num_layers == kLayersOf27B) {
    c.query_scale =
        1.0F / std::sqrt(static_cast<float>(c.hidden) / static_cast<float>(c.num_heads));
  }
  const std::uint32_t window = reader.count("attention.sliding_window", 1, 1U << 24);
  const std::uint32_t pattern =
      reader.count("attention.sliding_window_pattern", 1, 1U << 10, kDefaultPattern);
  const double local_base = reader.number("rope.freq_base_swa", 1.0, 1e15, kLocalRopeBase);
  for (std::size_t i = 0; i < c.layers.size(); ++i) {
    if ((i + 1) % pattern == 0) continue;
    c.layers[i] = {.rope_base = local_base, .rope_factor = 1.0, .window = window};
  }
  return c;
}

}  // namespace cicada::model
