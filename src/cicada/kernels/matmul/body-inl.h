// The products of every level, over the sixteen lanes of simd-inl.h. See matmul.h for the order of
// operations, which is the contract.
#pragma once

#include "cicada/kernels/matmul/finish-inl.h"
#include "cicada/kernels/matmul/layout.h"
#include "cicada/kernels/matmul/matmul.h"
#include "cicada/kernels/matmul/unpack-inl.h"
#include "cicada/kernels/simd-inl.h"

namespace cicada::kernels {
namespace {

// The most rows of activations one sub-tile takes: as many accumulators as the registers hold.
#if defined(__AVX512F__)
inline constexpr std::size_t kMaxSubTile = 16;
#elif defined(__AVX2__)
inline constexpr std::size_t kMaxSubTile = 4;
#else
inline constexpr std::size_t kMaxSubTile = 1;
#endif

// How far ahead of the products weights are asked for, in bytes.
inline constexpr std::size_t kPrefetchBytes = 4096;

CICADA_INLINE void prefetch(const std::uint8_t* p, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += 64) __builtin_prefetch(p + at, 0, 3);
}

CICADA_INLINE const QuantBlock& first_plane(const QuantBlock& x) { return x; }
CICADA_INLINE const QuantBlock& first_plane(const WideQuantBlock& x) { return x.high; }

// `dot` plus the exact product of steps [first, first + kSteps) with one block of activations.
template <std::size_t kSteps>
CICADA_INLINE I32x16 dot_steps(I32x16 dot, const U8x64 (&q)[8], const std::int8_t* x,
                               std::size_t first) {
  I32x16 odd = broadcast_i32(0);
#pragma GCC unroll 8
  for (std::size_t v = first; v < first + kSteps; v += 2) {
    dot = dot4(dot, q[v], x + 4 * v);
    odd = dot4(odd, q[v + 1], x + 4 * (v + 1));
  }
  return dot + odd;
}

template <std::size_t kSteps>
CICADA_INLINE I32x16 dot_block(I32x16 offset, const U8x64 (&q)[8], const QuantBlock& x,
                               std::size_t first) {
  return dot_steps<kSteps>(offset, q, x.q, first);
}
template <std::size_t kSteps>
CICADA_INLINE I32x16 dot_block(I32x16 offset, const U8x64 (&q)[8], const WideQuantBlock& x,
                               std::size_t first) {
  const I32x16 high = dot_steps<kSteps>(broadcast_i32(0), q, x.high.q, first);
  return dot_steps<kSteps>(shift_left<7>(high) + offset, q, x.low, first);
}

// Adds one block's product for one row of activations to acc.
template <DType kType, typename Block>
CICADA_INLINE F32x16 add_block(F32x16 acc, const U8x64 (&q)[8], const BlockScales<kType>& w,
                               const Block& block) {
  constexpr PackedLayout kLayout = packed_layout(kType);
  constexpr std::size_t kSteps = 8 / kLayout.groups;
  const QuantBlock& x = first_plane(block);
  const F32x16 x_scale = broadcast(x.scale);
#pragma GCC unroll 2
  for (std::size_t g = 0; g < kLayout.groups; ++g) {
    I32x16 offset = broadcast_i32(0);
    if constexpr (kLayout.offset_log2 != 0) {
      const std::int32_t sum = kLayout.groups == 1 ? x.negative_sum : x.negative_half_sums[g];
      offset = shift_left<static_cast<int>(kLayout.offset_log2)>(broadcast_i32(sum));
    }
    const I32x16 dot = dot_block<kSteps>(offset, q, block, g * kSteps);
    acc = fma(w.scale[g] * x_scale, to_f32(dot), acc);
    if constexpr (kLayout.has_min) {
      const float sum =
          kLayout.groups == 1 ? x.sum : x.scale * static_cast<float>(-x.negative_half_sums[g]);
      acc = fma(w.minimum[g], broadcast(sum), acc);
    }
  }
  return acc;
}

// kRows rows of activations against one group of 16 rows of weights. Shapes: x: block b of row j at
// x[b * stride + j]; out [kRows, 16].
template <DType kType, std::size_t kRows, typename Block>
CICADA_INLINE void block_tile(const std::uint8_t* w, std::size_t supers, const Block* x,
                              std::size_t stride, float* out) {
  constexpr PackedLayout kLayout = packed_layout(kType);
  F32x16 acc[kRows];
#pragma GCC unroll 16
  for (std::size_t j = 0; j < kRows; ++j) acc[j] = zero();
  for (std::size_t s = 0; s < supers; ++s, w += kLayout.super_bytes()) {
    const SuperScales<kType> super(w);
    if constexpr (kLayout.header_bytes != 0) prefetch(w + kPrefetchBytes, kLayout.body_offset);
    for (std::size_t b = 0; b < kLayout.blocks_per_super; ++b, x += stride) {
      const std::uint8_t* body = w + kLayout.body_offset + b * kLayout.body_bytes();
      prefetch(body + kPrefetchBytes,
               kLayout.body_bytes() + (kLayout.header_bytes == 0 ? kLayout.body_offset : 0));
      U8x64 q[8];
      unpack_body<kType>(body, q);
      const BlockScales<kType> scales(w + kLayout.header_bytes + b * kLayout.scale_bytes, super);
#pragma GCC unroll 16
      for (std::size_t j = 0; j < kRows; ++j) {
        acc[j] = add_block<kType>(acc[j], q, scales, x[j]);
      }
    }
  }
#pragma GCC unroll 16
  for (std::size_t j = 0; j < kRows; ++j) store(out + kGroupRows * j, acc[j]);
}

template <DType kType, std::size_t kRows>
CICADA_INLINE void float_tile(const std::uint8_t* w, std::size_t columns, const float* x,
                              std::size_t stride, float* out) {
  constexpr std::size_t kStep = kGroupRows * tensor::info(kType).block_bytes;
  F32x16 acc[kRows];
#pragma GCC unroll 16
  for (std::size_t j = 0; j < kRows; ++j) acc[j] = zero();
  for (std::size_t k = 0; k < columns; ++k, w += kStep) {
    const F32x16 weights = load_weights<kType>(w);
#pragma GCC unroll 16
    for (std::size_t j = 0; j < kRows; ++j) {
      acc[j] = fma(weights, broadcast(x[j * stride + k]), acc[j]);
    }
  }
#pragma GCC unroll 16
  for (std::size_t j = 0; j < kRows; ++j) store(out + kGroupRows * j, acc[j]);
}

// One tile of up to 16 rows of activations.
struct TileInput {
  const void* data;  // the tile's first block or row
  std::size_t rows;  // in the tile: also the block stride
  std::size_t columns;
};

// `Input` is QuantBlock, WideQuantBlock or float.
template <DType kType, typename Input, std::size_t kRows>
CICADA_INLINE void tile_rows(const std::uint8_t* w, const TileInput& x, std::size_t first,
                             float* out) {
  const auto* data = static_cast<const Input*>(x.data);
  if constexpr (is_float(kType)) {
    float_tile<kType, kRows>(w, x.columns, data + first * x.columns, x.columns,
                             out + first * kGroupRows);
  } else {
    constexpr std::size_t kColumns = kBlockColumns * packed_layout(kType).blocks_per_super;
    block_tile<kType, kRows>(w, x.columns / kColumns, data + first, x.rows,
                             out + first * kGroupRows);
  }
}

// Rows first … of the tile in sub-tiles of kRows, then the rest in smaller ones. A larger sub-tile
// uses each unpacked block for more rows; every row's arithmetic is the same in all of them.
template <DType kType, typename Input, std::size_t kRows>
CICADA_INLINE void sub_tiles(const std::uint8_t* w, const TileInput& x, std::size_t first,
                             float* out) {
  for (; first + kRows <= x.rows; first += kRows) tile_rows<kType, Input, kRows>(w, x, first, out);
  if constexpr (kRows > 1) {
    if (first < x.rows) sub_tiles<kType, Input, kRows / 2>(w, x, first, out);
  }
}

// out [x.rows, 16] = tile · groupᵀ.
template <DType kType, typename Input>
void tile(const std::uint8_t* w, const TileInput& x, float* out) {
  sub_tiles<kType, Input, kMaxSubTile>(w, x, 0, out);
}

using TileFunction = void (*)(const std::uint8_t* w, const TileInput& x, float* out);

template <DType kType>
TileFunction block_function(InputFormat format) {
  return format == InputFormat::kInt15 ? tile<kType, WideQuantBlock> : tile<kType, QuantBlock>;
}

TileFunction tile_function(DType dtype, InputFormat format) {
  switch (dtype) {
    case DType::kF32:
      return tile<DType::kF32, float>;
    case DType::kF16:
      return tile<DType::kF16, float>;
    case DType::kBF16:
      return tile<DType::kBF16, float>;
    case DType::kQ4_0:
      return block_function<DType::kQ4_0>(format);
    case DType::kQ4_1:
      return block_function<DType::kQ4_1>(format);
    case DType::kQ5_0:
      return block_function<DType::kQ5_0>(format);
    case DType::kQ5_1:
      return block_function<DType::kQ5_1>(format);
    case DType::kQ8_0:
      return block_function<DType::kQ8_0>(format);
    case DType::kQ2_K:
      return block_function<DType::kQ2_K>(format);
    case DType::kQ3_K:
      return block_function<DType::kQ3_K>(format);
    case DType::kQ4_K:
      return block_function<DType::kQ4_K>(format);
    case DType::kQ5_K:
      return block_function<DType::kQ5_K>(format);
    case DType::kQ6_K:
      return block_function<DType::kQ6_K>(format);
    case DType::kIQ4_NL:
      return block_function<DType::kIQ4_NL>(format);
    case DType::kIQ4_XS:
      return block_function<DType::kIQ4_XS>(format);
  }
  return nullptr;
}

// Groups taken together for one tile of activations, so that the tile stays in the first caches.
inline constexpr std::size_t kGroupsPerPass = 4;

TileInput tile_input(const Activations& x, std::size_t t) {
  const std::size_t blocks = t * kTileRows * (x.columns / kBlockColumns);
  const void* data = nullptr;
  switch (x.format) {
    case InputFormat::kInt8:
      data = static_cast<const QuantBlock*>(x.data) + blocks;
      break;
    case InputFormat::kInt15:
      data = static_cast<const WideQuantBlock*>(x.data) + blocks;
      break;
    case InputFormat::kF32:
      data = static_cast<const float*>(x.data) + t * kTileRows * x.columns;
      break;
    case InputFormat::kBF16:  // of level amx only
      break;
  }
  return {.data = data, .rows = tile_width(x.rows, t), .columns = x.columns};
}

// Calls body(tile, group) over all tiles of x and the given groups.
template <typename Body>
CICADA_INLINE void for_tiles(std::size_t rows, std::size_t group_begin, std::size_t group_end,
                             const Body& body) {
  const std::size_t tiles = (rows + kTileRows - 1) / kTileRows;
  for (std::size_t g0 = group_begin; g0 < group_end; g0 += kGroupsPerPass) {
    const std::size_t g1 = g0 + kGroupsPerPass < group_end ? g0 + kGroupsPerPass : group_end;
    for (std::size_t t = 0; t < tiles; ++t) {
      for (std::size_t g = g0; g < g1; ++g) body(t, g);
    }
  }
}

void matmul(const MatmulArgs& args, std::size_t group_begin, std::size_t group_end) {
  const TileFunction function = tile_function(args.w.dtype, args.x.format);
  const std::size_t group_bytes = packed_group_bytes(args.w.dtype, args.w.columns);
  const auto* data = reinterpret_cast<const std::uint8_t*>(args.w.data);
  for_tiles(args.x.rows, group_begin, group_end, [&](std::size_t t, std::size_t g) {
    alignas(64) float out[kTileRows * kGroupRows];
    const TileInput x = tile_input(args.x, t);
    function(data + g * group_bytes, x, out);
    for (std::size_t j = 0; j < x.rows; ++j) {
      finish(args, t * kTileRows + j, g * kGroupRows, out + j * kGroupRows);
    }
  });
}

void glu(const GluArgs& args, std::size_t group_begin, std::size_t group_end) {
  const TileFunction gate_function = tile_function(args.gate.dtype, args.gate_x.format);
  const TileFunction up_function = tile_function(args.up.dtype, args.up_x.format);
  const std::size_t gate_bytes = packed_group_bytes(args.gate.dtype, args.gate.columns);
  const std::size_t up_bytes = packed_group_bytes(args.up.dtype, args.up.columns);
  const auto* gate_data = reinterpret_cast<const std::uint8_t*>(args.gate.data);
  const auto* up_data = reinterpret_cast<const std::uint8_t*>(args.up.data);
  for_tiles(args.gate_x.rows, group_begin, group_end, [&](std::size_t t, std::size_t g) {
    alignas(64) float gate[kTileRows * kGroupRows];
    alignas(64) float up[kTileRows * kGroupRows];
    const TileInput x = tile_input(args.gate_x, t);
    gate_function(gate_data + g * gate_bytes, x, gate);
    up_function(up_data + g * up_bytes, tile_input(args.up_x, t), up);
    for (std::size_t j = 0; j < x.rows; ++j) {
      finish_glu(args, t * kTileRows + j, g * kGroupRows, gate + j * kGroupRows,
                 up + j * kGroupRows);
    }
  });
}

}  // namespace
}  // namespace cicada::kernels
