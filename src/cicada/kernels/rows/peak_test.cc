#include <cmath>

#include "cicada/kernels/rows/rows.h"
#include "cicada/kernels/test_support.h"

namespace cicada::kernels {
namespace {

using platform::IsaLevel;

Peak peak_of(IsaLevel level, const std::vector<float>& x, std::size_t piece) {
  Peak peak;
  // From the back, as workers may.
  for (std::size_t end = x.size(); end > 0;) {
    const std::size_t begin = end > piece ? end - piece : 0;
    const Guarded<float> guarded(std::vector<float>(x.begin() + static_cast<std::ptrdiff_t>(begin),
                                                    x.begin() + static_cast<std::ptrdiff_t>(end)));
    row_kernels(level).note_peak(guarded.data(), end - begin, static_cast<std::uint32_t>(begin),
                                 peak);
    end = begin;
  }
  return peak;
}

TEST(Peak, IsTheFirstOfTheGreatestInWhateverPieces) {
  for (const IsaLevel level : runnable_levels()) {
    for (const std::size_t n : {1U, 15U, 16U, 35U, 100U}) {
      for (std::size_t at = 0; at < n; ++at) {
        std::vector<float> x = random_floats(n, 1);
        x[at] = 9.0F;
        x[(at + n) / 2] = 9.0F;  // at or after
        for (const std::size_t piece : {1U, 7U, 16U, 64U, 100U}) {
          const Peak peak = peak_of(level, x, piece);
          ASSERT_EQ(peak.index, at) << platform::name(level) << " n " << n << " piece " << piece;
          ASSERT_EQ(peak.value, 9.0F);
          ASSERT_TRUE(peak.is_sound());
        }
      }
    }
  }
}

TEST(Peak, DamageAnywhereIsKept) {
  for (const IsaLevel level : runnable_levels()) {
    for (const float bad : {std::nanf(""), -std::nanf(""), INFINITY}) {
      for (const std::size_t at : {0U, 16U, 33U, 34U}) {
        std::vector<float> x = random_floats(35, 2);
        x[at] = bad;
        for (const std::size_t piece : {1U, 16U, 35U}) {
          ASSERT_FALSE(peak_of(level, x, piece).is_sound()) << platform::name(level) << " " << at;
        }
      }
    }
  }
}

TEST(Peak, MinusInfinityIsNoDamageButNothingToChoose) {
  for (const IsaLevel level : runnable_levels()) {
    std::vector<float> x(35, -INFINITY);
    ASSERT_FALSE(peak_of(level, x, 16).is_sound());
    ASSERT_FALSE(peak_of(level, x, 16).is_damaged);
    x[33] = -7.0F;
    ASSERT_TRUE(peak_of(level, x, 16).is_sound());
    ASSERT_EQ(peak_of(level, x, 16).index, 33U);
  }
}

}  // namespace
}  // namespace cicada::kernels
