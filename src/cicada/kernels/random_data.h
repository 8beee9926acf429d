// For tests and benchmarks: numbers and weights from one seed.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "cicada/tensor/dtype.h"
#include "cicada/tensor/half.h"

namespace cicada::kernels {

inline constexpr std::uint32_t kSeed = 20261130;

inline std::vector<float> random_floats(std::size_t n, std::uint32_t seed, float spread = 1.0F) {
  std::mt19937 generator(kSeed + seed);
  std::normal_distribution<float> normal(0.0F, spread);
  std::vector<float> values(n);
  for (float& value : values) value = normal(generator);
  return values;
}

// Random rows of a type as a file holds them: random bits with float16 scales of about `spread`.
inline std::vector<std::byte> random_rows(tensor::DType dtype, std::size_t rows,
                                          std::size_t columns, std::uint32_t seed,
                                          float spread = 0.05F) {
  using tensor::DType;
  std::mt19937 generator(kSeed + seed);
  std::uniform_int_distribution<int> byte(0, 255);
  std::normal_distribution<float> normal(0.0F, spread);
  std::vector<std::byte> bytes(rows * tensor::row_bytes(dtype, columns));
  for (std::byte& b : bytes) b = static_cast<std::byte>(byte(generator));
  const auto put16 = [&](std::size_t at, std::uint16_t value) {
    bytes[at] = static_cast<std::byte>(value & 255U);
    bytes[at + 1] = static_cast<std::byte>(value >> 8);
  };
  const auto scale = [&] { return tensor::f32_to_f16(normal(generator)); };
  const std::size_t block = tensor::info(dtype).block_bytes;
  for (std::size_t at = 0; at < bytes.size(); at += block) {
    switch (dtype) {
      case DType::kF32: {
        const float value = normal(generator);
        std::memcpy(&bytes[at], &value, sizeof value);
        break;
      }
      case DType::kF16:
        put16(at, scale());
        break;
      case DType::kBF16:
        put16(at, tensor::f32_to_bf16(normal(generator)));
        break;
      case DType::kQ4_1:
      case DType::kQ5_1:
      case DType::kQ4_K:
      case DType::kQ5_K:
        put16(at, scale());
        put16(at + 2, scale());
        break;
      case DType::kQ2_K:
        put16(at + 80, scale());
        put16(at + 82, scale());
        break;
      case DType::kQ3_K:
        put16(at + 108, scale());
        break;
      case DType::kQ6_K:
        put16(at + 208, scale());
        break;
      case DType::kQ4_0:
      case DType::kQ5_0:
      case DType::kQ8_0:
      case DType::kIQ4_NL:
      case DType::kIQ4_XS:
        put16(at, scale());
        break;
    }
  }
  return bytes;
}

}  // namespace cicada::kernels
