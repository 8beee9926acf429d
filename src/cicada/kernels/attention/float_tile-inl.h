// Scores and sums of a float16 tile, in float32.
#pragma once

#include "cicada/kernels/attention/multiply-inl.h"
#include "cicada/kernels/attention/tile-inl.h"

namespace cicada::kernels {
namespace {

CICADA_INLINE const std::uint16_t* halves(const std::byte* p) {
  return reinterpret_cast<const std::uint16_t*>(p);
}

// The cache as it is. Each element asks for the one at its place in the next tile, which lies in
// another page, where the processor would not look; into the second cache, since the first is full
// of this tile (measured: the first one loses a quarter).
struct CachedKeys {  // of 4 slabs [head_dim][16]; row t is dimension t
  const Tile& tile;
  CICADA_INLINE F32x16 line(std::size_t t, std::size_t i) const {
    if (t % 2 == 0) __builtin_prefetch(halves(tile.next.keys[i]) + t * 16, 0, 2);
    return load_f16(halves(tile.now.keys[i]) + t * 16);
  }
};
struct CachedValues {  // of 4 slabs [16][value_dim], a multiple of 16; row t is a position
  const Tile& tile;
  std::size_t value_dim;
  CICADA_INLINE F32x16 line(std::size_t t, std::size_t i) const {
    const std::size_t at = t % kSlabTokens * value_dim + 16 * i;
    if (i % 2 == 0) __builtin_prefetch(halves(tile.next.values[t / kSlabTokens]) + at, 0, 2);
    return load_f16(halves(tile.now.values[t / kSlabTokens]) + at);
  }
};

// Keys of one tile as float: [head_dim][64].
CICADA_INLINE void widen_keys(const Tile& tile, std::size_t head_dim, float* out) {
  for (std::size_t slab = 0; slab < kTileSlabs; ++slab) {
    const std::uint16_t* keys = halves(tile.now.keys[slab]);
    for (std::size_t d = 0; d < head_dim; ++d) {
      store(out + d * kKeyTile + 16 * slab, load_f16(keys + d * 16));
    }
  }
}

// Values of one tile as float: [64][value_dim rounded up to 16], filled with zeros.
CICADA_INLINE void widen_values(const Tile& tile, std::size_t value_dim, float* out) {
  const std::size_t width = round_up16(value_dim);
  for (std::size_t j = 0; j < kKeyTile; ++j) {
    const std::uint16_t* row =
        halves(tile.now.values[j / kSlabTokens]) + j % kSlabTokens * value_dim;
    std::size_t d = 0;
    for (; d + 16 <= value_dim; d += 16) store(out + j * width + d, load_f16(row + d));
    if (d == value_dim) continue;
    std::uint16_t tail[16] = {};
    __builtin_memcpy(tail, row + d, (value_dim - d) * sizeof(std::uint16_t));
    store(out + j * width + d, load_f16(tail));
  }
}

}  // namespace
}  // namespace cicada::kernels
