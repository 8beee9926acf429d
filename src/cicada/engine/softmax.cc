#include "cicada/engine/softmax.h"

#include <bit>
#include <cstddef>
#include <cstdint>

namespace cicada::engine {
namespace {

// e^x for x <= 0. Written without branches or conversions to integers, so that it is compiled to
// vector instructions.
double exp_of_negative(double x) {
  constexpr double kLeast = -706.0;      // e^x stays a normal number
  constexpr double kRounder = 0x1.8p52;  // adding it leaves an integer in the low bits
  constexpr double kLog2E = 1.4426950408889634;
  constexpr double kLn2High =
      0.6931471803691238;  // with zeros at its end, so that n times it is exact
  constexpr double kLn2Low = 1.9082149292705877e-10;
  const double clamped = x > kLeast ? x : kLeast;
  const double shifted = clamped * kLog2E + kRounder;
  const double n = shifted - kRounder;
  const double r = (clamped - n * kLn2High) - n * kLn2Low;  // in [-ln2/2, ln2/2]
  // The Taylor series: the first term left out is 5e-17.
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  // 2^n: the low bits of `shifted` are n.
  const double power =
      std::bit_cast<double>((std::bit_cast<std::uint64_t>(shifted) + 1023U) << 52U);
  return x > kLeast ? p * power : 0.0;
}

}  // namespace

void softmax_weights(std::span<const float> logits, float largest, float temperature,
                     std::span<double> weights) {
  const double most = largest;
  const double t = temperature;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    weights[i] = exp_of_negative((static_cast<double>(logits[i]) - most) / t);
  }
}

}  // namespace cicada::engine
