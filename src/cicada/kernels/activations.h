// How activations are handed to matmul: 8-bit blocks of 32 columns with a float32 scale, or
// float32.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cicada::kernels {

// 32 consecutive activations of one row: x[i] is about scale * q[i]. One cache line.
struct alignas(64) QuantBlock {
  std::int8_t q[32];
  float scale;                         // max |x| / 127; 0 for a block of zeros
  float sum;                           // scale * (sum of q), for weights with a minimum
  std::int32_t negative_sum;           // -(sum of q), for weights stored with an offset
  std::int32_t negative_half_sums[2];  // the same over columns 0-15 and 16-31
  std::int32_t unused[3];
};
static_assert(sizeof(QuantBlock) == 64);

// Rows are kept in tiles of up to 16: inside a tile, block b of every row lies together, so that
// the product walks one stream. The last tile is as narrow as the rows it has.
inline constexpr std::size_t kTileRows = 16;

constexpr std::size_t tile_width(std::size_t rows, std::size_t tile) {
  const std::size_t rest = rows - tile * kTileRows;
  return rest < kTileRows ? rest : kTileRows;
}

// The place of (row, block) among `rows` rows of `blocks` blocks.
constexpr std::size_t quant_block_index(std::size_t rows, std::size_t blocks, std::size_t row,
                                        std::size_t block) {
  const std::size_t tile = row / kTileRows;
  return tile * kTileRows * blocks + block * tile_width(rows, tile) + row % kTileRows;
}

// Input of a product: `rows` rows of `columns` activations in one of the two forms.
struct Activations {
  std::size_t rows = 0;
  std::size_t columns = 0;
  const QuantBlock* quantized = nullptr;  // tiles as above; for block types
  const float* f32 = nullptr;             // [rows, columns]; for float weights
};

}  // namespace cicada::kernels
