// The tables of one kernel family, a level each, and the choice among them.
// Threads: pure functions.
#pragma once

#include <cstddef>

#include "cicada/base/check.h"
#include "cicada/platform/cpu.h"

namespace cicada::kernels {

template <class Kernels>
struct Variant {
  platform::IsaLevel level;
  const Kernels* kernels;
};

// The first table, best first, that runs wherever `level` runs: a level may lack tables of its own
// in a family that has nothing to gain from it. The last one is for every machine.
template <class Kernels, std::size_t kCount>
const Kernels& choose(const Variant<Kernels> (&best_first)[kCount], platform::IsaLevel level) {
  const std::uint32_t features = platform::info(level).needs;
  for (const Variant<Kernels>& variant : best_first) {
    if ((platform::info(variant.level).needs & ~features) == 0) return *variant.kernels;
  }
  check_failed("every family has the scalar level", "no kernels of this level", __FILE__, __LINE__);
}

}  // namespace cicada::kernels
