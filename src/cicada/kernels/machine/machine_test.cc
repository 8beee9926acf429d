#include "cicada/kernels/machine/machine.h"

#include <numeric>

#include "cicada/kernels/test_support.h"

namespace cicada::kernels {
namespace {

TEST(Machine, EveryWordIsReadOnce) {
  std::vector<std::uint32_t> words(64 * 40);
  std::iota(words.begin(), words.end(), 0xFFFF0000U);
  for (const platform::IsaLevel level : runnable_levels()) {
    for (const std::size_t lines : {std::size_t{0}, std::size_t{4}, std::size_t{40}}) {
      const std::span<const std::uint32_t> read = std::span(words).first(lines * 16);
      Guarded<std::uint32_t> guarded(std::vector<std::uint32_t>(read.begin(), read.end()));
      EXPECT_EQ(machine_kernels(level).read(std::as_bytes(guarded.span()).data(), lines * 64),
                std::accumulate(read.begin(), read.end(), 0U))
          << platform::name(level) << ", " << lines << " lines";
    }
  }
}

TEST(Machine, EveryProductOfARoundIsDone) {
  // Four bytes i, i + 1, … against 1, -2, 3, 4, and sixteen accumulators alike.
  std::uint32_t round = 0;
  for (std::uint32_t i = 0; i < 64; i += 4) round += i - 2 * (i + 1) + 3 * (i + 2) + 4 * (i + 3);
  for (const platform::IsaLevel level : runnable_levels()) {
    EXPECT_EQ(machine_kernels(level).int8_products(0), 0U);
    EXPECT_EQ(machine_kernels(level).int8_products(7), 7 * 16 * round) << platform::name(level);
  }
}

TEST(Machine, ALevelWithoutOwnTablesTakesTheBestThatRunsThere) {
  EXPECT_EQ(&machine_kernels(platform::IsaLevel::kAmxEmulated),
            &machine_kernels(platform::IsaLevel::kAvx512Vnni));
  EXPECT_NE(&machine_kernels(platform::IsaLevel::kAvxVnni),
            &machine_kernels(platform::IsaLevel::kAvx2));
  EXPECT_NE(&machine_kernels(platform::IsaLevel::kScalar),
            &machine_kernels(platform::IsaLevel::kAvx2));
}

}  // namespace
}  // namespace cicada::kernels
