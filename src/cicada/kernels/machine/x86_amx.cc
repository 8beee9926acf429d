#include "cicada/kernels/machine/body-inl.h"
#include "cicada/kernels/tile_unit-inl.h"

namespace cicada::kernels {
namespace {

void zero_tiles() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
}

void int8_tile_products(std::uint64_t rounds) {
  const TileUnit unit;
  zero_tiles();
  for (std::uint64_t round = 0; round < rounds; ++round) {
    _tile_dpbusd(0, 4, 6);
    _tile_dpbusd(1, 4, 7);
    _tile_dpbusd(2, 5, 6);
    _tile_dpbusd(3, 5, 7);
  }
}

void bf16_tile_products(std::uint64_t rounds) {
  const TileUnit unit;
  zero_tiles();
  for (std::uint64_t round = 0; round < rounds; ++round) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
}

}  // namespace

extern const MachineKernels machine_kernels_amx;
const MachineKernels machine_kernels_amx = {.read = read,
                                            .int8_products = int8_products,
                                            .int8_tile_products = int8_tile_products,
                                            .bf16_tile_products = bf16_tile_products};

}  // namespace cicada::kernels
