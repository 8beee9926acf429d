#include "cicada/kernels/attention/cache.h"

#include <array>

namespace cicada::kernels {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"f16", "q8", "q6", "q4"};

constexpr std::size_t divide_up(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

// Bytes that hold `rows` rows of 64 elements.
constexpr std::size_t plane_bytes(CacheType type, std::size_t rows) {
  switch (type) {
    case CacheType::kF16:
      return rows * kCacheRowBytes * 2;
    case CacheType::kQ8:
      return rows * kCacheRowBytes;
    case CacheType::kQ6:
      return (divide_up(rows, 2) + divide_up(rows, 4)) * kCacheRowBytes;
    case CacheType::kQ4:
      return divide_up(rows, 2) * kCacheRowBytes;
  }
  return 0;
}

constexpr std::size_t scale_bytes(std::size_t dim) {
  return cache_scale_groups(dim) * kSlabTokens * sizeof(std::uint16_t);
}

}  // namespace

std::string_view cache_type_name(CacheType type) { return kNames[static_cast<std::size_t>(type)]; }

std::optional<CacheType> cache_type_named(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<CacheType>(i);
  }
  return std::nullopt;
}

std::size_t key_plane_bytes(CacheType type, std::size_t head_dim) {
  return plane_bytes(type, cache_key_rows(head_dim));
}

std::size_t value_quad_bytes(CacheType type, std::size_t value_dim) {
  return plane_bytes(type, cache_value_rows(value_dim));
}

std::size_t key_slab_bytes(CacheType type, std::size_t head_dim) {
  if (type == CacheType::kF16) return head_dim * kSlabTokens * sizeof(std::uint16_t);
  return key_plane_bytes(type, head_dim) + scale_bytes(head_dim);
}

std::size_t value_slab_bytes(CacheType type, std::size_t value_dim) {
  if (type == CacheType::kF16) return value_dim * kSlabTokens * sizeof(std::uint16_t);
  return kSlabTokens / 4 * value_quad_bytes(type, value_dim) + scale_bytes(value_dim);
}

}  // namespace cicada::kernels
