// For tests only: executes the AMX instructions of this program on a processor that lacks them.
// Each one traps as illegal, is decoded from the code bytes, and is carried out on tiles kept here;
// so what is tested is the very code that a processor with AMX runs, its registers and addresses
// included. A microsecond or more an instruction, one thread at a time.
// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, chapters on VEX
// encoding and on each instruction.
#pragma once

#include <signal.h>
#include <ucontext.h>

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace cicada::kernels {

class AmxTrap {
 public:
  AmxTrap() {
    struct sigaction action {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    ::sigaction(SIGILL, &action, &before_);
  }
  AmxTrap(const AmxTrap&) = delete;
  AmxTrap& operator=(const AmxTrap&) = delete;
  ~AmxTrap() { ::sigaction(SIGILL, &before_, nullptr); }

 private:
  struct Tile {
    alignas(64) std::uint8_t rows[16][64] = {};
  };
  struct State {
    bool is_configured = false;
    Tile tiles[8];
  };

  static State& state() {
    static State instance;
    return instance;
  }

  // A three-byte VEX instruction with opcode map 0F38, which all of AMX has.
  struct Instruction {
    unsigned prefix = 0;  // 0: none, 1: 66, 2: F3, 3: F2
    unsigned opcode = 0;
    unsigned mod = 0;
    unsigned reg = 0;
    unsigned rm = 0;
    unsigned third = 0;  // VEX.vvvv
    std::uint8_t* address = nullptr;
    std::int64_t stride = 0;  // the index register: bytes from row to row
    std::size_t length = 0;
  };

  // Register `number` as it stood when the program trapped.
  static std::int64_t general(const ucontext_t& context, unsigned number) {
    constexpr int kOrder[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                REG_R12, REG_R13, REG_R14, REG_R15};
    return context.uc_mcontext.gregs[kOrder[number]];
  }

  static std::uint8_t* memory_at(std::int64_t address) {
    std::uint8_t* pointer = nullptr;
    std::memcpy(&pointer, &address, sizeof pointer);
    return pointer;
  }

  static Instruction decode(const ucontext_t& context) {
    const std::uint8_t* code = memory_at(context.uc_mcontext.gregs[REG_RIP]);
    Instruction in;
    if (code[0] != 0xC4 || (code[1] & 31U) != 2) return in;
    const unsigned index_extension = (code[1] & 0x40U) != 0 ? 0U : 8U;  // stored inverted
    const unsigned base_extension = (code[1] & 0x20U) != 0 ? 0U : 8U;
    in.prefix = code[2] & 3U;
    in.third = ~(code[2] >> 3U) & 15U;
    in.opcode = code[3];
    in.mod = code[4] >> 6U;
    in.reg = (code[4] >> 3U) & 7U;
    in.rm = code[4] & 7U;
    in.length = 5;
    if (in.mod == 3) return in;
    std::int64_t address = 0;
    unsigned base = in.rm | base_extension;
    if (in.rm == 4) {
      const unsigned sib = code[in.length++];
      base = (sib & 7U) | base_extension;
      const unsigned index = ((sib >> 3U) & 7U) | index_extension;
      if (index != 4) in.stride = general(context, index) << (sib >> 6U);
    }
    const bool has_no_base = in.mod == 0 && (base & 7U) == 5;
    if (!has_no_base) address = general(context, base);
    if (in.mod == 1) {
      address += static_cast<std::int8_t>(code[in.length]);
      in.length += 1;
    } else if (in.mod == 2 || has_no_base) {
      std::int32_t displacement = 0;
      std::memcpy(&displacement, code + in.length, sizeof displacement);
      address += displacement;
      in.length += sizeof displacement;
    }
    in.address = memory_at(address);
    return in;
  }

  __attribute__((target("fma,avx512f"))) static void multiply_bf16(const Tile& a, const Tile& b,
                                                                   Tile& c) {
    for (std::size_t m = 0; m < 16; ++m) {
      float even[16] = {};
      float odd[16] = {};
      for (std::size_t p = 0; p < 16; ++p) {
        std::uint32_t x = 0;
        std::memcpy(&x, a.rows[m] + 4 * p, sizeof x);
        std::uint32_t w[16];
        std::memcpy(w, b.rows[p], sizeof w);
        for (std::size_t r = 0; r < 16; ++r) {
          even[r] = __builtin_fmaf(std::bit_cast<float>(x << 16U),
                                   std::bit_cast<float>(w[r] << 16U), even[r]);
          odd[r] = __builtin_fmaf(std::bit_cast<float>(x & 0xFFFF0000U),
                                  std::bit_cast<float>(w[r] & 0xFFFF0000U), odd[r]);
        }
      }
      float sums[16];
      std::memcpy(sums, c.rows[m], sizeof sums);
      for (std::size_t r = 0; r < 16; ++r) sums[r] += even[r] + odd[r];
      std::memcpy(c.rows[m], sums, sizeof sums);
    }
  }

  static bool execute(const Instruction& in) {
    State& s = state();
    constexpr unsigned kNone = 0;
    constexpr unsigned kF3 = 2;
    constexpr unsigned kF2 = 3;
    if (in.opcode == 0x49 && in.prefix == kNone && in.mod != 3) {  // ldtilecfg
      const std::uint8_t* config = in.address;
      bool is_whole = config[0] == 1 && config[1] == 0;
      for (std::size_t tile = 0; tile < 8; ++tile) {
        is_whole = is_whole && config[16 + 2 * tile] == 64 && config[17 + 2 * tile] == 0 &&
                   config[48 + tile] == 16;
        s.tiles[tile] = {};
      }
      s.is_configured = true;
      return is_whole;
    }
    if (!s.is_configured) return false;
    if (in.opcode == 0x49 && in.prefix == kNone) {  // tilerelease
      s.is_configured = false;
      return true;
    }
    if (in.opcode == 0x49 && in.prefix == kF2 && in.mod == 3) {  // tilezero
      s.tiles[in.reg] = {};
      return true;
    }
    if (in.opcode == 0x4B && in.mod != 3 && in.rm == 4) {  // tileloadd, tilestored
      Tile& tile = s.tiles[in.reg];
      for (std::int64_t row = 0; row < 16; ++row) {
        std::uint8_t* memory = in.address + row * in.stride;
        if (in.prefix == kF2) std::memcpy(tile.rows[row], memory, 64);
        if (in.prefix == kF3) std::memcpy(memory, tile.rows[row], 64);
      }
      return in.prefix == kF2 || in.prefix == kF3;
    }
    if (in.opcode == 0x5C && in.prefix == kF3 && in.mod == 3) {  // tdpbf16ps
      multiply_bf16(s.tiles[in.rm], s.tiles[in.third], s.tiles[in.reg]);
      return true;
    }
    return false;
  }

  static void handle(int, siginfo_t*, void* raw) {
    auto* context = static_cast<ucontext_t*>(raw);
    const Instruction in = decode(*context);
    if (in.length == 0 || !execute(in)) std::abort();
    context->uc_mcontext.gregs[REG_RIP] += static_cast<std::int64_t>(in.length);
  }

  struct sigaction before_ {};
};

}  // namespace cicada::kernels
