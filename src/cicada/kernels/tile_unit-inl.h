// The tile registers of AMX. Included only by files of level amx.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace cicada::kernels {
namespace {

// The tile registers of this thread, set up for 16 rows of 64 bytes each while it lives.
class TileUnit {
 public:
  TileUnit() {
    alignas(64) std::uint8_t config[64] = {};
    config[0] = 1;  // the palette of eight tiles
    for (std::size_t tile = 0; tile < 8; ++tile) {
      config[16 + 2 * tile] = 64;  // bytes of a row, 16 bits each
      config[48 + tile] = 16;      // rows
    }
    __asm__ volatile("ldtilecfg %0" : : "m"(config));
  }
  TileUnit(const TileUnit&) = delete;
  TileUnit& operator=(const TileUnit&) = delete;
  ~TileUnit() { _tile_release(); }
};

}  // namespace
}  // namespace cicada::kernels
