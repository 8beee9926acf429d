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

// Kernel levels, lowest first. Levels without kernels yet are known by name so that forcing one
// gives a clear error.
enum class IsaLevel : std::uint8_t { kScalar, kAvx2, kAvxVnni, kAvx512Vnni, kAmx };

struct IsaLevelInfo {
  IsaLevel level;
  std::string_view name;
  std::uint32_t needs;  // CpuFeature bits
  bool built;           // kernels of this level exist in this build
};

inline constexpr std::array<IsaLevelInfo, 5> kIsaLevels = {{
    {IsaLevel::kScalar, "scalar", 0, true},
    {IsaLevel::kAvx2, "avx2", kCpuAvx2, true},
    {IsaLevel::kAvxVnni, "avxvnni", kCpuAvx2 | kCpuAvxVnni, true},
    {IsaLevel::kAvx512Vnni, "avx512vnni", kCpuAvx2 | kCpuAvx512 | kCpuAvx512Vnni, true},
    {IsaLevel::kAmx, "amx", kCpuAvx2 | kCpuAvx512 | kCpuAvx512Vnni | kCpuAmxInt8 | kCpuAmxBf16,
     false},
}};

constexpr const IsaLevelInfo& info(IsaLevel level) {
  return kIsaLevels[static_cast<std::size_t>(level)];
}
constexpr std::string_view name(IsaLevel level) { return info(level).name; }

// The feature bits of this machine.
std::uint32_t detect_cpu_features();

// True when a level's kernels exist and the features allow them.
bool is_supported(IsaLevel level, std::uint32_t features);

// The best supported level, or the one that `forced` names (empty: not forced).
// Errors: kInvalidArgument for an unknown name, kUnsupported when this build or machine lacks it.
Result<IsaLevel> choose_isa_level(std::uint32_t features, std::string_view forced);

}  // namespace cicada::platform
