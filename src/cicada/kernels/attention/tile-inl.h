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

struct TileSlabs {
  const std::byte* keys[kTileSlabs];
  const std::byte* values[kTileSlabs];
};

struct Tile {
  TileSlabs now;
  TileSlabs next;
};

// What stays the same from tile to tile.
struct TileReader {
  const std::byte* const* pages;
  std::size_t offset_bytes;
  std::size_t key_bytes;
  std::size_t slab_bytes;
  unsigned page_shift;      // a page has 2^page_shift slabs
  std::int64_t first_slab;  // of those that some row sees: others may have no page
  std::int64_t last_slab;

  CICADA_INLINE TileSlabs find(std::int64_t tile) const {
    TileSlabs slabs;
    for (std::size_t s = 0; s < kTileSlabs; ++s) {
      // The keys of a slab that no row sees are masked, so any slab does for them.
      std::int64_t index =
          tile * static_cast<std::int64_t>(kTileSlabs) + static_cast<std::int64_t>(s);
      if (index < first_slab) index = first_slab;
      if (index > last_slab) index = last_slab;
      const auto at = static_cast<std::size_t>(index);
      const std::size_t in_page = at & ((std::size_t{1} << page_shift) - 1);
      slabs.keys[s] = pages[at >> page_shift] + offset_bytes + in_page * slab_bytes;
      slabs.values[s] = slabs.keys[s] + key_bytes;
    }
    return slabs;
  }
};

}  // namespace
}  // namespace cicada::kernels
