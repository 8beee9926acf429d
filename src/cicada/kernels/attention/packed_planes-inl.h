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

  // Bytes of rows 4 block … 4 block + 3, as they lie in the planes.
  struct Four {
    U8x64 bytes[kType == CacheType::kQ8 ? 4 : kType == CacheType::kQ6 ? 3 : 2];
  };
  CICADA_INLINE Four four(std::size_t block) const {
    Four rows;
    if constexpr (kType == CacheType::kQ8) {
      for (std::size_t i = 0; i < 4; ++i) {
        rows.bytes[i] = load_bytes(low + (4 * block + i) * kRowBytes);
      }
    } else {
      rows.bytes[0] = load_bytes(low + 2 * block * kRowBytes);
      rows.bytes[1] = load_bytes(low + (2 * block + 1) * kRowBytes);
      if constexpr (kType == CacheType::kQ6) rows.bytes[2] = load_bytes(high + block * kRowBytes);
    }
    return rows;
  }
  // Row kPlace of four, as it was stored: with the offset.
  template <std::size_t kPlace>
  CICADA_INLINE static U8x64 row(const Four& rows) {
    if constexpr (kType == CacheType::kQ8) {
      return rows.bytes[kPlace];
    } else {
      const U8x64 nibbles = nibble<kPlace % 2 * 4>(rows.bytes[kPlace / 2]);
      if constexpr (kType == CacheType::kQ4) {
        return nibbles;
      } else {
        return or_two_bits<2 * kPlace, 4>(nibbles, rows.bytes[2]);
      }
    }
  }

  // Rows 2 pair and 2 pair + 1, as they were stored; pair % 2 being kOdd.
  template <bool kOdd>
  CICADA_INLINE void two(std::size_t pair, U8x64 (&rows)[2]) const {
    if constexpr (kType == CacheType::kQ8) {
      rows[0] = load_bytes(low + 2 * pair * kRowBytes);
      rows[1] = load_bytes(low + (2 * pair + 1) * kRowBytes);
    } else {
      const U8x64 bytes = load_bytes(low + pair * kRowBytes);
      rows[0] = nibble<0>(bytes);
      rows[1] = nibble<4>(bytes);
      if constexpr (kType == CacheType::kQ6) {
        const U8x64 bits = load_bytes(high + pair / 2 * kRowBytes);
        rows[0] = or_two_bits < kOdd ? 4 : 0, 4 > (rows[0], bits);
        rows[1] = or_two_bits < kOdd ? 6 : 2, 4 > (rows[1], bits);
      }
    }
  }

  // Asks for four(block) or two(pair) of what will be read next.
  CICADA_INLINE void prefetch_four(std::size_t block) const {
    if constexpr (kType == CacheType::kQ8) {
      for (std::size_t i = 0; i < 4; ++i) {
        __builtin_prefetch(low + (4 * block + i) * kRowBytes, 0, 2);
      }
    } else {
      __builtin_prefetch(low + 2 * block * kRowBytes, 0, 2);
      __builtin_prefetch(low + (2 * block + 1) * kRowBytes, 0, 2);
      if constexpr (kType == CacheType::kQ6) __builtin_prefetch(high + block * kRowBytes, 0, 2);
    }
  }
  template <bool kOdd>
  CICADA_INLINE void prefetch_two(std::size_t pair) const {
    if constexpr (kType == CacheType::kQ8) {
      __builtin_prefetch(low + 2 * pair * kRowBytes, 0, 2);
      __builtin_prefetch(low + (2 * pair + 1) * kRowBytes, 0, 2);
    } else {
      __builtin_prefetch(low + pair * kRowBytes, 0, 2);
      if constexpr (kType == CacheType::kQ6 && !kOdd) {
        __builtin_prefetch(high + pair / 2 * kRowBytes, 0, 2);
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
    for (std::size_t block = 0; block < rows / 4; ++block, out += 4 * kRowBytes) {
      const auto four = planes.four(block);
      store_bytes(out, Planes<kType>::template row<0>(four));
      store_bytes(out + kRowBytes, Planes<kType>::template row<1>(four));
      store_bytes(out + 2 * kRowBytes, Planes<kType>::template row<2>(four));
      store_bytes(out + 3 * kRowBytes, Planes<kType>::template row<3>(four));
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
      for (std::size_t pair = 0; pair < rows / 2; ++pair, out += 2 * kRowBytes) {
        U8x64 two[2];
        if (pair % 2 == 0) {
          planes.template two<false>(pair, two);
        } else {
          planes.template two<true>(pair, two);
        }
        store_bytes(out, subtract_bytes(two[0], kOffset));
        store_bytes(out + kRowBytes, subtract_bytes(two[1], kOffset));
      }
    }
  }
}

}  // namespace
}  // namespace cicada::kernels
