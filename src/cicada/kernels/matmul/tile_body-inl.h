// Products in tiles of BF16 for many rows of activations: weights become panels of tiles once for
// all of them, and sums stay in memory between runs of columns. See matmul.h for the contract.
#pragma once

#include "cicada/kernels/activations-inl.h"
#include "cicada/kernels/matmul/finish-inl.h"
#include "cicada/kernels/matmul/matmul.h"
#include "cicada/kernels/matmul/panels-inl.h"

namespace cicada::kernels {

extern const MatmulKernels matmul_kernels_avx512vnni;

namespace {

// Room that one call works in. A run of columns is what a panel holds: two megabytes of second
// cache take panels, sums and the activations of two rows of tiles.
inline constexpr std::size_t kPanelGroups = kTileScratchGroups;
inline constexpr std::size_t kRunTiles = 32;                          // tiles of 32 columns
inline constexpr std::size_t kRunColumns = kRunTiles * kTileColumns;  // whole superblocks
inline constexpr std::size_t kPassTiles = 32;  // row tiles that share a panel
static_assert(sizeof(TileScratch::panels) ==
              kPanelGroups * kRunTiles * kTileElements * sizeof(std::uint16_t));
static_assert(sizeof(TileScratch::sums) == kPassTiles * kPanelGroups * kTileSums * sizeof(float));

// A group of 16 rows of one of the matrices of a call.
struct PanelGroup {
  const std::uint8_t* data = nullptr;
  FillFunction fill = nullptr;
  const std::uint16_t* kept = nullptr;  // its panel, where that is kept
};

struct PanelGroups {
  PanelGroup list[kPanelGroups];
  std::size_t count = 0;

  void add(const PackedWeights& w, std::size_t group) {
    const auto* data = reinterpret_cast<const std::uint8_t*>(w.data);
    list[count++] = {
        .data = data + group * packed_group_bytes(w.dtype, w.columns),
        .fill = fill_function(w.dtype),
        .kept = w.panels == nullptr ? nullptr : w.panels + group * panel_elements(w.columns)};
  }
};

// Row tiles [first, first + count) of the activations against all groups. Sums of row tile i and
// group j lie at scratch.sums[i * kPanelGroups + j].
class TilePass {
 public:
  TilePass(const PanelGroups& groups, const Activations& x, std::size_t first, std::size_t count,
           TileScratch& scratch)
      : groups_(groups), first_(first), count_(count), scratch_(scratch), columns_(x.columns) {
    depth_ = (x.columns + kTileColumns - 1) / kTileColumns;
    data_ = static_cast<const std::uint16_t*>(x.data);
  }

  // Columns ascend, so a sum's order does not depend on anything but its row and its weights.
  void run() {
    for (std::size_t tile = 0; tile < depth_; tile += kRunTiles) {
      const std::size_t tiles = depth_ - tile < kRunTiles ? depth_ - tile : kRunTiles;
      const std::size_t begin = tile * kTileColumns;
      const std::size_t columns = columns_ - begin < kRunColumns ? columns_ - begin : kRunColumns;
      for (std::size_t j = 0; j < groups_.count; ++j) {
        const PanelGroup& group = groups_.list[j];
        if (group.kept != nullptr) {
          panels_[j] = group.kept + tile * kTileElements;
        } else {
          group.fill(group.data, begin, columns, scratch_.panels[j]);
          panels_[j] = scratch_.panels[j];
        }
      }
      std::size_t i = 0;
      for (; i + 2 <= count_; i += 2) multiply_rows<2>(i, tile, tiles);
      if (i < count_) multiply_rows<1>(i, tile, tiles);
    }
  }

  const float* sums(std::size_t row_tile, std::size_t group) const {
    return scratch_.sums[row_tile * kPanelGroups + group];
  }

 private:
  template <std::size_t kRowTiles>
  void multiply_rows(std::size_t i, std::size_t tile, std::size_t tiles) {
    std::size_t j = 0;
    for (; j + 2 <= groups_.count; j += 2) multiply_block<kRowTiles, 2>(i, j, tile, tiles);
    if (j < groups_.count) multiply_block<kRowTiles, 1>(i, j, tile, tiles);
  }

  template <std::size_t kRowTiles, std::size_t kGroups>
  void multiply_block(std::size_t i, std::size_t j, std::size_t tile, std::size_t tiles) {
    TileProduct<kRowTiles, kGroups> product;
    product.depth = tiles;
    product.adds = tile != 0;
    for (std::size_t r = 0; r < kRowTiles; ++r) {
      product.a[r] = data_ + ((first_ + i + r) * depth_ + tile) * kTileElements;
      for (std::size_t g = 0; g < kGroups; ++g) {
        product.c[r][g] = scratch_.sums[(i + r) * kPanelGroups + j + g];
      }
    }
    for (std::size_t g = 0; g < kGroups; ++g) product.b[g] = panels_[j + g];
    multiply(product);
  }

  const PanelGroups& groups_;
  const std::uint16_t* data_ = nullptr;
  std::size_t first_;
  std::size_t count_;
  TileScratch& scratch_;
  std::size_t columns_;
  std::size_t depth_ = 0;
  const std::uint16_t* panels_[kPanelGroups] = {};  // of this run of columns
};

// Calls finish(pass, row tile of the pass, first row) for all rows of x.
template <typename Finish>
void for_passes(const PanelGroups& groups, const Activations& x, TileScratch& scratch,
                const Finish& finish) {
  const std::size_t tiles = (x.rows + kTileRows - 1) / kTileRows;
  for (std::size_t first = 0; first < tiles; first += kPassTiles) {
    const std::size_t count = tiles - first < kPassTiles ? tiles - first : kPassTiles;
    TilePass pass(groups, x, first, count, scratch);
    pass.run();
    for (std::size_t i = 0; i < count; ++i) finish(pass, i, (first + i) * kTileRows);
  }
}

void tile_matmul(const MatmulArgs& args, std::size_t group_begin, std::size_t group_end) {
  const TileUnit unit;
  for (std::size_t g0 = group_begin; g0 < group_end; g0 += kPanelGroups) {
    PanelGroups groups;
    for (std::size_t g = g0; g < group_end && groups.count < kPanelGroups; ++g) {
      groups.add(args.w, g);
    }
    for_passes(groups, args.x, *args.scratch,
               [&](const TilePass& pass, std::size_t i, std::size_t row) {
                 const std::size_t rows = tile_width(args.x.rows, row / kTileRows);
                 for (std::size_t j = 0; j < groups.count; ++j) {
                   const float* sums = pass.sums(i, j);
                   for (std::size_t r = 0; r < rows; ++r) {
                     finish(args, row + r, (g0 + j) * kGroupRows, sums + r * kGroupRows);
                   }
                 }
               });
  }
}

void tile_glu(const GluArgs& args, std::size_t group_begin, std::size_t group_end) {
  constexpr std::size_t kPairs = kPanelGroups / 2;
  const TileUnit unit;
  for (std::size_t g0 = group_begin; g0 < group_end; g0 += kPairs) {
    PanelGroups groups;
    for (std::size_t g = g0; g < group_end && g < g0 + kPairs; ++g) {
      groups.add(args.gate, g);
      groups.add(args.up, g);
    }
    for_passes(groups, args.gate_x, *args.scratch,
               [&](const TilePass& pass, std::size_t i, std::size_t row) {
                 const std::size_t rows = tile_width(args.gate_x.rows, row / kTileRows);
                 for (std::size_t j = 0; j < groups.count; j += 2) {
                   const float* gate = pass.sums(i, j);
                   const float* up = pass.sums(i, j + 1);
                   for (std::size_t r = 0; r < rows; ++r) {
                     finish_glu(args, row + r, (g0 + j / 2) * kGroupRows, gate + r * kGroupRows,
                                up + r * kGroupRows);
                   }
                 }
               });
  }
}

void fill_panels(const PackedWeights& w, std::size_t group_begin, std::size_t group_end,
                 std::uint16_t* panels) {
  for (std::size_t g = group_begin; g < group_end; ++g) {
    const auto* data = reinterpret_cast<const std::uint8_t*>(w.data);
    fill_function(w.dtype)(data + g * packed_group_bytes(w.dtype, w.columns), 0, w.columns,
                           panels + g * panel_elements(w.columns));
  }
}

// Activations in BF16 go through tiles; those of other forms through the level below.
void matmul(const MatmulArgs& args, std::size_t group_begin, std::size_t group_end) {
  if (args.x.format == InputFormat::kBF16) {
    tile_matmul(args, group_begin, group_end);
  } else {
    matmul_kernels_avx512vnni.matmul(args, group_begin, group_end);
  }
}

void glu(const GluArgs& args, std::size_t group_begin, std::size_t group_end) {
  if (args.gate_x.format == InputFormat::kBF16) {
    tile_glu(args, group_begin, group_end);
  } else {
    matmul_kernels_avx512vnni.glu(args, group_begin, group_end);
  }
}

}  // namespace
}  // namespace cicada::kernels
