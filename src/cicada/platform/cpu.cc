#include "cicada/platform/cpu.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cicada::platform {
namespace {

// XCR0: which register files the operating system saves on a context switch.
std::uint64_t read_xcr0() {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (std::uint64_t{high} << 32) | low;
}

// Linux gives tile registers to a process that asks for them (since 5.16); threads and programs
// started later inherit the permission. Source: Documentation/arch/x86/xstate.rst.
bool may_use_tiles() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // the register file's number in XCR0
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

constexpr bool has(std::uint32_t bits, unsigned index) { return ((bits >> index) & 1U) != 0; }

std::string known_levels(std::uint32_t features) {
  std::string list;
  for (const IsaLevelInfo& entry : kIsaLevels) {
    if (!is_supported(entry.level, features)) continue;
    if (!list.empty()) list += ", ";
    list += entry.name;
  }
  return list;
}

}  // namespace

std::uint32_t detect_cpu_features() {
  std::uint32_t a = 0;
  std::uint32_t b = 0;
  std::uint32_t c = 0;
  std::uint32_t d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return 0;
  const bool fma = has(c, 12);
  const bool osxsave = has(c, 27);
  const bool f16c = has(c, 29);
  if (!osxsave) return 0;
  const std::uint64_t xcr0 = read_xcr0();
  const bool saves_ymm = (xcr0 & 0x6U) == 0x6U;
  const bool saves_zmm = saves_ymm && (xcr0 & 0xE0U) == 0xE0U;
  const bool saves_tiles = (xcr0 & 0x60000U) == 0x60000U;
  if (!saves_ymm || __get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return 0;

  std::uint32_t features = 0;
  if (has(b, 5) && has(b, 8) && fma && f16c) features |= kCpuAvx2;
  const bool avx512 = has(b, 16) && has(b, 17) && has(b, 28) && has(b, 30) && has(b, 31);
  if (saves_zmm && avx512) features |= kCpuAvx512;
  if (saves_zmm && has(c, 11)) features |= kCpuAvx512Vnni;
  if (saves_tiles && has(d, 24) && may_use_tiles()) {
    if (has(d, 25)) features |= kCpuAmxInt8;
    if (has(d, 22)) features |= kCpuAmxBf16;
  }
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) != 0) {
    if (has(a, 4)) features |= kCpuAvxVnni;
    if (saves_zmm && has(a, 5)) features |= kCpuAvx512Bf16;
  }
  return features;
}

bool is_supported(IsaLevel level, std::uint32_t features) {
  return (info(level).needs & ~features) == 0;
}

Result<IsaLevel> choose_isa_level(std::uint32_t features, std::string_view forced) {
  if (forced.empty()) {
    IsaLevel best = IsaLevel::kScalar;
    for (const IsaLevelInfo& entry : kIsaLevels) {
      if (is_supported(entry.level, features) && !entry.only_forced) best = entry.level;
    }
    return best;
  }
  for (const IsaLevelInfo& entry : kIsaLevels) {
    if (entry.name != forced) continue;
    if (!is_supported(entry.level, features)) {
      return fail(Code::kUnsupported,
                  "kernel level {} is not supported by this processor; here it can be: {}", forced,
                  known_levels(features));
    }
    return entry.level;
  }
  return fail(Code::kInvalidArgument, "kernel level '{}' is unknown; here it can be: {}", forced,
              known_levels(features));
}

}  // namespace cicada::platform
