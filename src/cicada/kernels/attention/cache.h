// How keys and values of one KV head lie in the cache.
//
// The unit is a slab: sixteen consecutive positions of one head, its keys and then its values. A
// page is one or more slabs of every head. What one position writes is never in a byte with another
// position's, so positions can be written at once.
//
//   f16   keys [head_dim][16], values [16][value_dim], float16
//   q8    keys [head_dim / 4][16][4], values [4 quads][value_dim / 16][16][4]: bytes of 4 elements
//         of a key, or of 4 positions of an element; scales after them
//   q6    the same in two planes: 4 low bits of two such rows of 64 in one, 2 high bits of four
//   q4    the low plane alone
//
// An element of q8, q6 and q4 is scale * (stored - half the range); elements share a float16 scale
// in groups of 32 along the head: keys [groups][16], values [groups][16]. Scales of keys may be
// negative, those of values are not.
//
// A cache of which pages are chosen by their keys (bounds_bytes) holds besides, for each tile of 64
// positions, the largest and the least of every element of its keys: float16 [2][head_dim rounded
// up to 16], in the page of the tile's last slab.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace cicada::kernels {

enum class CacheType : std::uint8_t { kF16, kQ8, kQ6, kQ4 };

// "f16", "q8", "q6", "q4".
std::string_view cache_type_name(CacheType type);
std::optional<CacheType> cache_type_named(std::string_view name);

inline constexpr std::size_t kSlabTokens = 16;
inline constexpr std::size_t kScaleGroup = 32;  // elements of a head that share a scale

inline constexpr std::size_t kCacheRowBytes = 64;  // a row of one plane: 64 elements

// What is added to an element of q8, q6 or q4 when it is stored: half its range.
constexpr std::int32_t cache_offset(CacheType type) {
  return type == CacheType::kQ8 ? 128 : type == CacheType::kQ6 ? 32 : 8;
}

// Rows of 64 elements of a slab's keys, and of a quad of its values: a head is filled up to whole
// planes with elements that are never written.
constexpr std::size_t cache_key_rows(std::size_t head_dim) { return (head_dim + 15) / 16 * 4; }
constexpr std::size_t cache_value_rows(std::size_t value_dim) { return (value_dim + 31) / 32 * 2; }
constexpr std::size_t cache_scale_groups(std::size_t dim) {
  return (dim + kScaleGroup - 1) / kScaleGroup;
}

// Bytes of the planes of a slab's keys, and of one quad of its values; scales come after them.
std::size_t key_plane_bytes(CacheType type, std::size_t head_dim);
std::size_t value_quad_bytes(CacheType type, std::size_t value_dim);

// Bytes of a slab's keys or values, scales included; multiples of 32.
std::size_t key_slab_bytes(CacheType type, std::size_t head_dim);
std::size_t value_slab_bytes(CacheType type, std::size_t value_dim);

// Bytes of the bounds of a tile's keys.
constexpr std::size_t key_bounds_bytes(std::size_t head_dim) {
  return 2 * ((head_dim + 15) / 16 * 16) * sizeof(std::uint16_t);
}

// The cache of one KV head of one layer of a sequence.
struct CachedHead {
  const std::byte* const* pages = nullptr;  // [pages]
  std::size_t slabs_in_page = 4;            // 1, 2 or 4
  std::size_t offset_bytes = 0;             // of the head's first slab in every page
  std::size_t head_dim = 0;
  std::size_t value_dim = 0;
  CacheType key_type = CacheType::kF16;
  CacheType value_type = CacheType::kF16;
  std::size_t bounds_offset = 0;  // of the head's bounds in every page; 0: none are kept

  std::size_t key_bytes() const { return key_slab_bytes(key_type, head_dim); }
  std::size_t slab_bytes() const { return key_bytes() + value_slab_bytes(value_type, value_dim); }
  const std::byte* slab(std::size_t index, std::size_t bytes) const {
    return pages[index / slabs_in_page] + offset_bytes + index % slabs_in_page * bytes;
  }
};

}  // namespace cicada::kernels
