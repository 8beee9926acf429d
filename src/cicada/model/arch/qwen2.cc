// Qwen2 and Qwen2.5: as llama, with biases on q, k and v.
#include "cicada/model/arch/architectures.h"

namespace cicada::model {

Config read_qwen2(ConfigReader& reader) {
  Config c = reader.common();
  c.has_qkv_bias = true;
  return c;
}

}  // namespace cicada::model
