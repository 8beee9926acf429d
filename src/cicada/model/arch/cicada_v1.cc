// cicada-v1: llama with a learned relative-position layer: score[h, i, j] += W[h, bucket(i - j)].
// A width of 0 or an absent key means that the model has no such layer.
#include "cicada/model/arch/architectures.h"

namespace cicada::model {
namespace {

constexpr std::uint32_t kMaxBuckets = 1U << 16;
constexpr std::uint32_t kMaxDistance = 1U << 24;

}  // namespace

Config read_cicada_v1(ConfigReader& reader) {
  Config c = read_llama(reader);
  c.rel_pos_dim = reader.count("rel_pos_dim", 0, kMaxBuckets, 0);
  if (c.rel_pos_dim == 0) return c;
  if (c.rel_pos_dim % 2 != 0) {
    reader.refuse(
        Error(Code::kCorrupt,
              fmt::format("key cicada-v1.rel_pos_dim: is {}, it must be even", c.rel_pos_dim)));
  }
  c.rel_pos_max_distance =
      reader.count("rel_pos_max_distance", c.rel_pos_dim / 2 + 1, kMaxDistance, 4 * c.rel_pos_dim);
  return c;
}

}  // namespace cicada::model
