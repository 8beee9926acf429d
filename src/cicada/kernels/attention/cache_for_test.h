// For tests only: what the bytes of a slab stand for, read element by element from the layout that
// cache.h describes.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "cicada/kernels/attention/attention.h"
#include "cicada/tensor/half.h"

namespace cicada::kernels {

inline constexpr CacheType kCacheTypes[] = {CacheType::kF16, CacheType::kQ8, CacheType::kQ6,
                                            CacheType::kQ4};

// Element (row, byte) of planes of 64 bytes a row.
inline unsigned stored_element(CacheType type, const std::byte* planes, std::size_t rows,
                               std::size_t row, std::size_t byte) {
  const auto at = [&](std::size_t i) { return std::to_integer<unsigned>(planes[i * 64 + byte]); };
  if (type == CacheType::kQ8) return at(row);
  const unsigned low = at(row / 2) >> (row % 2 * 4) & 15U;
  if (type == CacheType::kQ4) return low;
  return low | (at((rows + 1) / 2 + row / 4) >> (row % 4 * 2) & 3U) << 4U;
}

inline float half_at(const std::byte* at, std::size_t index) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, at + 2 * index, sizeof bits);
  return tensor::f16_to_f32(bits);
}

inline std::vector<float> cached_key(CacheType type, const std::byte* slab, std::size_t dim,
                                     std::size_t slot) {
  std::vector<float> key(dim);
  const std::size_t rows = cache_key_rows(dim);
  for (std::size_t d = 0; d < dim; ++d) {
    if (type == CacheType::kF16) {
      key[d] = half_at(slab, d * 16 + slot);
      continue;
    }
    const unsigned stored = stored_element(type, slab, rows, d / 4, slot * 4 + d % 4);
    const float scale =
        half_at(slab + key_plane_bytes(type, dim), d / kScaleGroup * kSlabTokens + slot);
    key[d] = scale * static_cast<float>(static_cast<std::int32_t>(stored) - cache_offset(type));
  }
  return key;
}

inline std::vector<float> cached_value(CacheType type, const std::byte* slab, std::size_t dim,
                                       std::size_t slot) {
  std::vector<float> value(dim);
  const std::size_t rows = cache_value_rows(dim);
  for (std::size_t d = 0; d < dim; ++d) {
    if (type == CacheType::kF16) {
      value[d] = half_at(slab, slot * dim + d);
      continue;
    }
    const std::size_t quad = value_quad_bytes(type, dim);
    const unsigned stored =
        stored_element(type, slab + slot / 4 * quad, rows, d / 16, d % 16 * 4 + slot % 4);
    const float scale = half_at(slab + 4 * quad, d / kScaleGroup * kSlabTokens + slot);
    value[d] = scale * static_cast<float>(static_cast<std::int32_t>(stored) - cache_offset(type));
  }
  return value;
}

// One slab with a key and a value in one place, the rest as zeros left it.
class CachedSlab {
 public:
  CachedSlab(platform::IsaLevel level, CacheType type, std::span<const float> key,
             std::span<const float> value, std::size_t slot)
      : type_(type),
        dim_(key.size()),
        slot_(slot),
        key_bytes_(key_slab_bytes(type, dim_)),
        bytes_(key_bytes_ + value_slab_bytes(type, dim_)) {
    put(level, key, value, slot);
  }

  void put(platform::IsaLevel level, std::span<const float> key, std::span<const float> value,
           std::size_t slot) {
    attention_kernels(level).store_key(type_, key.data(), dim_, slot, bytes_.data());
    attention_kernels(level).store_value(type_, value.data(), dim_, slot,
                                         bytes_.data() + key_bytes_);
  }

  const std::vector<std::byte>& bytes() const { return bytes_; }
  std::vector<float> key_at(std::size_t slot) const {
    return cached_key(type_, bytes_.data(), dim_, slot);
  }
  std::vector<float> value_at(std::size_t slot) const {
    return cached_value(type_, bytes_.data() + key_bytes_, dim_, slot);
  }
  std::vector<float> key() const { return key_at(slot_); }
  std::vector<float> value() const { return value_at(slot_); }

 private:
  CacheType type_;
  std::size_t dim_;
  std::size_t slot_;
  std::size_t key_bytes_;
  std::vector<std::byte> bytes_;
};

}  // namespace cicada::kernels
