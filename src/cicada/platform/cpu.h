// What this processor can execute, and the kernel level chosen from it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "cicada/base/result.h"

namespace cicada::platform {

// Feature bits that kernels ask for; the operating system must save the registers too.
enum CpuFeature : std::uint32_t {
  kCpuAvx2 = 1U << 0,  // AVX2, FMA, F16C, BMI2 together
  kCpuAvxVnni = 1U << 1,
  kCpuAvx512 = 1U << 2,  // F, BW, VL, DQ, CD together
  kCpuAvx512Vnni = 1U << 3,
  kCpuAvx512Bf16 = 1U << 4,
  kCpuAmxInt8 = 1U << 5,
  kCpuAmxBf16 = 1U << 6,
};

// Kernel levels, lowest first. amx_emulated computes what amx does, bit for bit, without its
// instructions: slowly, so it is never chosen, only forced.
enum class IsaLevel : std::uint8_t { kScalar, kAvx2, kAvxVnni, kAvx512Vnni, kAmxEmulated, kAmx };

struct IsaLevelInfo {
  IsaLevel level;
  std::string_view name;
  std::uint32_t needs;  // CpuFeature bits
  bool only_forced;     // never chosen by itself
};

inline constexpr std::uint32_t kCpuAvx512All =
    kCpuAvx2 | kCpuAvx512 | kCpuAvx512Vnni | kCpuAvx512Bf16;
inline constexpr std::array<IsaLevelInfo, 6> kIsaLevels = {{
    {IsaLevel::kScalar, "scalar", 0, false},
    {IsaLevel::kAvx2, "avx2", kCpuAvx2, false},
    {IsaLevel::kAvxVnni, "avxvnni", kCpuAvx2 | kCpuAvxVnni, false},
    {IsaLevel::kAvx512Vnni, "avx512vnni", kCpuAvx2 | kCpuAvx512 | kCpuAvx512Vnni, false},
    {IsaLevel::kAmxEmulated, "amx_emulated", kCpuAvx512All, true},
    {IsaLevel::kAmx, "amx", kCpuAvx512All | kCpuAmxInt8 | kCpuAmxBf16, false},
}};

constexpr const IsaLevelInfo& info(IsaLevel level) {
  return kIsaLevels[static_cast<std::size_t>(level)];
}
constexpr std::string_view name(IsaLevel level) { return info(level).name; }

// The level whose numbers a level gives.
constexpr IsaLevel numerics_of(IsaLevel level) {
  return level == IsaLevel::kAmxEmulated ? IsaLevel::kAmx : level;
}
// Whether products of the prefill role take activations in BF16.
constexpr bool has_tiles(IsaLevel level) { return numerics_of(level) == IsaLevel::kAmx; }

// The feature bits of this machine that this process may use: for AMX the system is asked, once,
// for the permission that its registers need.
std::uint32_t detect_cpu_features();

// True when the features allow a level.
bool is_supported(IsaLevel level, std::uint32_t features);

// The best supported level, or the one that `forced` names (empty: not forced).
// Errors: kInvalidArgument for an unknown name, kUnsupported when this machine lacks it.
Result<IsaLevel> choose_isa_level(std::uint32_t features, std::string_view forced);

}  // namespace cicada::platform
