// The machine's limits at every level, over the sixteen lanes of simd-inl.h.
#pragma once

#include "cicada/kernels/machine/machine.h"
#include "cicada/kernels/simd-inl.h"

namespace cicada::kernels {
namespace {

// How far ahead lines are asked for: the same distance as the products do.
inline constexpr std::size_t kReadAhead = 4096;

std::uint32_t sum_lanes(I32x16 a) {
  std::int32_t lanes[16];
  store_i32(lanes, a);
  std::uint32_t sum = 0;
  for (const std::int32_t lane : lanes) sum += static_cast<std::uint32_t>(lane);
  return sum;
}

std::uint32_t read(const std::byte* data, std::size_t bytes) {
  constexpr std::size_t kStreams = 4;
  I32x16 sums[kStreams];
  for (I32x16& sum : sums) sum = broadcast_i32(0);
  for (std::size_t at = 0; at < bytes; at += kStreams * 64) {
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kStreams; ++i) {
      const std::byte* line = data + at + 64 * i;
      __builtin_prefetch(line + kReadAhead, 0, 3);
      sums[i] = sums[i] + load_i32(reinterpret_cast<const std::int32_t*>(line));
    }
  }
  return sum_lanes((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

std::uint32_t int8_products(std::uint64_t rounds) {
  constexpr std::size_t kProducts = 16;
  alignas(64) std::uint8_t left[64];
  for (std::size_t i = 0; i < 64; ++i) left[i] = static_cast<std::uint8_t>(i);
  const std::int8_t right[4] = {1, -2, 3, 4};
  const U8x64 factors = load_bytes(left);
  I32x16 sums[kProducts];
  for (I32x16& sum : sums) sum = broadcast_i32(0);
  for (std::uint64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (I32x16& sum : sums) sum = dot4(sum, factors, right);
  }
  I32x16 total = broadcast_i32(0);
  for (const I32x16& sum : sums) total = total + sum;
  return sum_lanes(total);
}

}  // namespace
}  // namespace cicada::kernels
