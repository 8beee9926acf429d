// The rows of packed keys and values, out of their planes (cache.h).
#pragma once

#include "cicada/kernels/attention/tile-inl.h"

namespace cicada::kernels {
namespace {

inline constexpr std::size_t kRowBytes = kCacheRowBytes;
inline constexpr std::size_t kGroupKeyRows = kScaleGroup / 4;     // rows of 16 keys by 4 elements
inline constexpr std::size_t kGroupValueRows = kScaleGroup / 16;  // rows of 16 elements by 4 keys

// Where the planes of `rows` rows of 64 elements lie.
template <CacheType kType>
struct Planes {
  const std::uint8_t* low;
  const std::uint8_t* high;  // of q6

  CICADA_INLINE Planes(const std::byte* at, std::size_t rows)
      : low(reinterpret_cast<const std::uint8_t*>(at)), high(low + (rows + 1) / 2 * kRowBytes) {}

  // Row r, r % 4 being kPlace, as it was stored: with the offset.
  template <std::size_t kPlace>
  CICADA_INLINE U8x64 row(std::size_t r) const {
    if constexpr (kType == CacheType::kQ8) {
      return load_bytes(low + r * kRowBytes);
    } else {
      const U8x64 nibbles = nibble<kPlace % 2 * 4>(load_bytes(low + r / 2 * kRowBytes));
      if constexpr (kType == CacheType::kQ4) {
        return nibbles;
      } else {
        return or_two_bits<2 * kPlace, 4>(nibbles, load_bytes(high + r / 4 * kRowBytes));
      }
    }
  }

  // Asks for rows r … r + 3, or r … r + 1, of what will be read next.
  CICADA_INLINE void prefetch_four(std::size_t r) const {
    if constexpr (kType == CacheType::kQ8) {
      for (std::size_t i = r; i < r + 4; ++i) __builtin_prefetch(low + i * kRowBytes, 0, 2);
    } else {
      __builtin_prefetch(low + r / 2 * kRowBytes, 0, 2);
      __builtin_prefetch(low + (r / 2 + 1) * kRowBytes, 0, 2);
      if constexpr (kType == CacheType::kQ6) __builtin_prefetch(high + r / 4 * kRowBytes, 0, 2);
    }
  }
  CICADA_INLINE void prefetch_two(std::size_t r) const {
    if constexpr (kType == CacheType::kQ8) {
      __builtin_prefetch(low + r * kRowBytes, 0, 2);
      __builtin_prefetch(low + (r + 1) * kRowBytes, 0, 2);
    } else {
      __builtin_prefetch(low + r / 2 * kRowBytes, 0, 2);
      if (kType == CacheType::kQ6 && r % 4 == 0) {
        __builtin_prefetch(high + r / 4 * kRowBytes, 0, 2);
      }
    }
  }
};

CICADA_INLINE void prefetch_scales(const std::byte* scales, std::size_t dim) {
  for (std::size_t g = 0; g < cache_scale_groups(dim); g += 2) {
    __builtin_prefetch(scales + g * kSlabTokens * sizeof(std::uint16_t), 0, 2);
  }
}

CICADA_INLINE F32x16 load_scales(const std::byte* scales, std::size_t group) {
  return load_f16(reinterpret_cast<const std::uint16_t*>(scales) + group * kSlabTokens);
}

// The rows of a tile's keys as bytes, as they were stored: [slab][key rows][64].
template <CacheType kType>
CICADA_INLINE void unpack_keys(const Tile& tile, std::size_t head_dim, std::uint8_t* out) {
  const std::size_t rows = cache_key_rows(head_dim);
  for (std::size_t s = 0; s < kTileSlabs; ++s) {
    const Planes<kType> planes(tile.now.keys[s], rows);
    for (std::size_t i = 0; i < rows; i += 4, out += 4 * kRowBytes) {
      store_bytes(out, planes.template row<0>(i));
      store_bytes(out + kRowBytes, planes.template row<1>(i + 1));
      store_bytes(out + 2 * kRowBytes, planes.template row<2>(i + 2));
      store_bytes(out + 3 * kRowBytes, planes.template row<3>(i + 3));
    }
  }
}

// The rows of a tile's values as signed bytes: [slab][quad][value rows][64].
template <CacheType kType>
CICADA_INLINE void unpack_values(const Tile& tile, std::size_t value_dim, std::uint8_t* out) {
  constexpr char kOffset = static_cast<char>(cache_offset(kType));
  const std::size_t rows = cache_value_rows(value_dim);
  const std::size_t quad_bytes = value_quad_bytes(kType, value_dim);
  for (std::size_t s = 0; s < kTileSlabs; ++s) {
    for (std::size_t quad = 0; quad < kSlabTokens / 4; ++quad) {
      const Planes<kType> planes(tile.now.values[s] + quad * quad_bytes, rows);
      for (std::size_t i = 0; i < rows; i += 2, out += 2 * kRowBytes) {
        const bool is_even = i % 4 == 0;
        const U8x64 first = is_even ? planes.template row<0>(i) : planes.template row<2>(i);
        const U8x64 second =
            is_even ? planes.template row<1>(i + 1) : planes.template row<3>(i + 1);
        store_bytes(out, subtract_bytes(first, kOffset));
        store_bytes(out + kRowBytes, subtract_bytes(second, kOffset));
      }
    }
  }
}

}  // namespace
}  // namespace cicada::kernels
