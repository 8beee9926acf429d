// Loops that show what the machine allows at most: the roofline that kernels are held against.
// Threads: callable on any data at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cicada/platform/cpu.h"

namespace cicada::kernels {

struct MachineKernels {
  // Reads [data, data + bytes) in order with the widest loads. `bytes` is a multiple of 256, `data`
  // is aligned to 64. Returns the sum of its 32-bit words, modulo 2^32.
  std::uint32_t (*read)(const std::byte* data, std::size_t bytes);

  // `rounds` rounds of sixteen independent products of 64 unsigned with 64 signed bytes, all in
  // registers. At most kMostRounds. Returns the sum of all products, modulo 2^32.
  std::uint32_t (*int8_products)(std::uint64_t rounds);

  // `rounds` rounds of four independent products of tiles, of bytes and of BF16, all in registers.
  // None where there are no tile instructions.
  void (*int8_tile_products)(std::uint64_t rounds) = nullptr;
  void (*bf16_tile_products)(std::uint64_t rounds) = nullptr;
};

inline constexpr std::uint64_t kMostRounds = 1'000'000;  // so that no sum leaves 32 bits

// Multiplications and additions of one round of int8_products, counted apart.
inline constexpr std::uint64_t kInt8RoundOps = std::uint64_t{16} * 64 * 2;

// The same of the rounds of tiles: 16 by 16 sums over 64 bytes or 32 BF16.
inline constexpr std::uint64_t kInt8TileRoundOps = std::uint64_t{4} * 16 * 16 * 64 * 2;
inline constexpr std::uint64_t kBf16TileRoundOps = std::uint64_t{4} * 16 * 16 * 32 * 2;

// The functions of a level; platform::is_supported says which may be called.
const MachineKernels& machine_kernels(platform::IsaLevel level);

}  // namespace cicada::kernels
