// Projects activations through packed weights: y = x · Wᵀ, with what usually follows fused in.
//
// Shapes:  x [m, k]; w [n, k] packed (layout.h); y [m, n] with row stride ldy, not overlapping x.
// Numbers: one accumulator for each output, float32. Block types, for k-blocks of 32 ascending:
//            acc = fma(w.scale * x.scale, float(exact integer dot), acc)     (twice with 16-column
//            scales) acc = fma(w.min, x.sum, acc)                                    (types with
//            minima)
//          float types, for k ascending: acc = fma(w, x, acc). The bits of an output depend on its
//          own row of x and of w only, never on m, the tile or the threads; and they are the same
//          on every level (docs/numerics.md). Activations in BF16 (level amx, block types and
//          BF16): weights are rounded to BF16, and acc takes tiles of 32 columns, ascending, as
//          tiles-inl.h says.
// Threads: callable on disjoint group ranges at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cicada/kernels/activations.h"
#include "cicada/platform/cpu.h"
#include "cicada/tensor/dtype.h"

namespace cicada::kernels {

struct PackedWeights {
  tensor::DType dtype = tensor::DType::kF32;
  const std::byte* data = nullptr;
  std::size_t rows = 0;     // n
  std::size_t columns = 0;  // k
  // The same weights in tiles of BF16, kept: group after group of 16 rows, panel_elements() each.
  // None: made for each product anew.
  const std::uint16_t* panels = nullptr;
};

// BF16 that a group of 16 rows takes as a panel.
constexpr std::size_t panel_elements(std::size_t columns) {
  return bf16_elements(kTileRows, columns);
}

// What a product in tiles works in; made once, one a thread. Shapes: panels [group][tiles of 512
// BF16]; sums [row tile, group][16 rows, 16].
inline constexpr std::size_t kTileScratchGroups = 8;  // groups of weights taken together
struct alignas(64) TileScratch {
  std::uint16_t panels[kTileScratchGroups][std::size_t{32} * 512];
  float sums[std::size_t{32} * kTileScratchGroups][256];
};

// Whether weights of a type can be multiplied with activations in BF16. Wider floats would lose
// bits and stay in float32.
constexpr bool has_tile_products(tensor::DType dtype) {
  return dtype != tensor::DType::kF32 && dtype != tensor::DType::kF16;
}

enum class Epilogue : std::uint8_t {
  kStore,  // y = acc (+ bias)
  kAdd,    // y = y + (acc (+ bias))
};

enum class Activation : std::uint8_t {
  kSilu,      // z / (1 + e^-z)
  kGeluTanh,  // the tanh form of GELU
};

struct MatmulArgs {
  PackedWeights w;
  Activations x;
  const float* bias = nullptr;  // [n] or none
  float* y = nullptr;
  std::size_t ldy = 0;
  Epilogue epilogue = Epilogue::kStore;
  TileScratch* scratch = nullptr;  // for activations in BF16
};

// y = act(x · gateᵀ) * (x · upᵀ); gate and up have equal shapes, and the same x in the form each
// needs.
struct GluArgs {
  PackedWeights gate;
  PackedWeights up;
  Activations gate_x;
  Activations up_x;
  float* y = nullptr;
  std::size_t ldy = 0;
  Activation activation = Activation::kSilu;
  TileScratch* scratch = nullptr;  // for activations in BF16
};

// The functions of one level. Ranges are groups of 16 rows of w.
struct MatmulKernels {
  void (*matmul)(const MatmulArgs& args, std::size_t group_begin, std::size_t group_end);
  void (*glu)(const GluArgs& args, std::size_t group_begin, std::size_t group_end);

  // Panels of groups of w, for PackedWeights::panels; none where there are no tiles. Shapes: panels
  // [all groups, panel_elements].
  void (*fill_panels)(const PackedWeights& w, std::size_t group_begin, std::size_t group_end,
                      std::uint16_t* panels) = nullptr;
};

// The functions of a level; platform::is_supported says which may be called.
const MatmulKernels& matmul_kernels(platform::IsaLevel level);

}  // namespace cicada::kernels
