// How activations are handed to matmul: blocks of 32 columns of 8-bit or 15-bit integers with a
// float32 scale, float32, or tiles of BF16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cicada::kernels {

enum class InputFormat : std::uint8_t {
  kInt8,   // 32 integers of [-127, 127] and a float32 scale
  kInt15,  // 32 integers of [-16256, 16256] and a float32 scale: 128 times finer
  kF32,
  kBF16,  // for tile instructions: level amx
};

// As `inspect --plan` writes it.
constexpr std::string_view input_format_name(InputFormat format) {
  switch (format) {
    case InputFormat::kInt8:
      return "int8/32";
    case InputFormat::kInt15:
      return "int15/32";
    case InputFormat::kF32:
      return "f32";
    case InputFormat::kBF16:
      return "bf16";
  }
  return "";
}

// 32 consecutive activations of one row: x[i] is about scale * q[i].
struct alignas(32) QuantBlock {
  std::int8_t q[32];
  float scale;                         // max |x| / largest integer; 0 for a block of zeros
  float sum;                           // scale * (sum of q), for weights with a minimum
  std::int32_t negative_sum;           // -(sum of q), for weights stored with an offset
  std::int32_t negative_half_sums[2];  // the same over columns 0-15 and 16-31
  std::int32_t unused[3];
};
static_assert(sizeof(QuantBlock) == 64);

// The same with finer integers, kept as two planes: 128 * high.q[i] + low[i], low in [-64, 63].
// Scale and sums are those of the whole integers.
struct alignas(32) WideQuantBlock {
  QuantBlock high;
  std::int8_t low[32];
};
static_assert(sizeof(WideQuantBlock) == 96);

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

// BF16 is kept in tiles of 16 rows and 32 columns, those of 16 rows side by side; the last ones are
// filled up with zeros (columns) or anything (rows).
inline constexpr std::size_t kBf16TileColumns = 32;
inline constexpr std::size_t kBf16TileElements = kTileRows * kBf16TileColumns;

constexpr std::size_t bf16_elements(std::size_t rows, std::size_t columns) {
  return (rows + kTileRows - 1) / kTileRows *
         ((columns + kBf16TileColumns - 1) / kBf16TileColumns) * kBf16TileElements;
}

// The place of the first 32 columns of a row; those of the next tile are kBf16TileElements further.
constexpr std::size_t bf16_row_index(std::size_t columns, std::size_t row) {
  return bf16_elements(row / kTileRows * kTileRows, columns) + row % kTileRows * kBf16TileColumns;
}

// Input of a product: `rows` rows of `columns` activations in one of the forms.
struct Activations {
  InputFormat format = InputFormat::kF32;
  std::size_t rows = 0;
  std::size_t columns = 0;
  // Tiles of QuantBlock or WideQuantBlock, for block types of weights; float [rows, columns], for
  // float weights; tiles of BF16, for either.
  const void* data = nullptr;
};

}  // namespace cicada::kernels
