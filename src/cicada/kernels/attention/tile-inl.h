// A tile of 64 keys at an absolute position: its four slabs, wherever they lie, and those of the
// tile that comes next.
#pragma once

#include "cicada/kernels/attention/attention.h"
#include "cicada/kernels/simd-inl.h"

namespace cicada::kernels {
namespace {

inline constexpr std::size_t kTileVectors = kKeyTile / 16;
inline constexpr std::size_t kTileSlabs = kKeyTile / kSlabTokens;
static_assert(kTileSlabs == kTileVectors, "a slab's positions are the lanes of a vector");

constexpr std::size_t round_up16(std::size_t n) { return (n + 15) / 16 * 16; }

struct Tile {
  const std::byte* keys[kTileSlabs];
  const std::byte* values[kTileSlabs];
  const std::byte* next_keys[kTileSlabs];
  const std::byte* next_values[kTileSlabs];
};

// What stays the same from tile to tile.
struct TileReader {
  const CachedHead& cache;
  std::size_t key_bytes;
  std::size_t slab_bytes;
  std::int64_t first_slab;  // of those that some row sees: others may have no page
  std::int64_t last_slab;

  CICADA_INLINE void find(std::int64_t tile, const std::byte* (&keys)[kTileSlabs],
                          const std::byte* (&values)[kTileSlabs]) const {
    for (std::size_t s = 0; s < kTileSlabs; ++s) {
      // The keys of a slab that no row sees are masked, so any slab does for them.
      std::int64_t index =
          tile * static_cast<std::int64_t>(kTileSlabs) + static_cast<std::int64_t>(s);
      if (index < first_slab) index = first_slab;
      if (index > last_slab) index = last_slab;
      keys[s] = cache.slab(static_cast<std::size_t>(index), slab_bytes);
      values[s] = keys[s] + key_bytes;
    }
  }
  CICADA_INLINE Tile tile(std::int64_t index, std::int64_t next) const {
    Tile t;
    find(index, t.keys, t.values);
    find(next, t.next_keys, t.next_values);
    return t;
  }
};

}  // namespace
}  // namespace cicada::kernels
