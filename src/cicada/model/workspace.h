// The executor's working memory: every buffer of plan.h, sized once from the configuration.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cicada/base/result.h"
#include "cicada/kernels/activations.h"
#include "cicada/kernels/attention/attention.h"
#include "cicada/kernels/matmul/matmul.h"
#include "cicada/kernels/rows/rows.h"
#include "cicada/model/config.h"
#include "cicada/tensor/buffer.h"

namespace cicada::model {

struct WorkspaceLimits {
  std::size_t max_rows = 512;       // tokens in one batch
  std::size_t max_sequences = 1;    // sequences in one batch
  std::size_t max_context = 0;      // positions of a sequence
  std::size_t max_logit_rows = 16;  // rows of one head product
};

// What the workspace of a model must hold besides.
struct WorkspaceNeeds {
  std::size_t num_workers = 1;
  bool has_tiles = false;      // inputs in BF16, and scratch of their products
  bool has_key_bias = false;   // keys cached without their bias
  bool packs_keys = false;     // queries in the form of packed keys
  bool chooses_pages = false;  // a choice of pages for every row
};

// Room for the forms of a prepared input.
struct PreparedInput {
  kernels::QuantBlock* int8 = nullptr;
  kernels::WideQuantBlock* int15 = nullptr;
  float* f32 = nullptr;
  std::uint16_t* bf16 = nullptr;

  const void* data(kernels::InputFormat format) const {
    switch (format) {
      case kernels::InputFormat::kInt8:
        return int8;
      case kernels::InputFormat::kInt15:
        return int15;
      case kernels::InputFormat::kBF16:
        return bf16;
      case kernels::InputFormat::kF32:
        break;
    }
    return f32;
  }
};

// One set of RoPE angles: layers with equal base and scaling share it.
struct RopeSet {
  double base = 0.0;
  double factor = 1.0;
  std::vector<double> inverse_frequency;  // [rope_dim / 2]
  float* cosines = nullptr;               // [max_rows, rope_dim / 2]
  float* sines = nullptr;
  // For keys cached without their bias (kernels/attention/attention.h), pairs filled up to 16.
  float* tile_angles = nullptr;   // [tiles of the context][2][pairs]
  float* place_angles = nullptr;  // [2 * pairs][64]
};

// Attention state of one worker.
struct WorkerScratch {
  float* row = nullptr;                      // [widest row]
  float* attention = nullptr;                // attention_scratch_floats
  std::span<kernels::AttentionRow> queries;  // of one block
  float* partial_out = nullptr;              // [queries, padded value_dim]
  float* partial_stats = nullptr;            // [queries, 2]
  float* total_out = nullptr;
  float* total_stats = nullptr;
  float* tile_scores = nullptr;           // [tiles of the context, twice]: with chooses_pages
  std::uint32_t* tile_order = nullptr;    // [tiles of the context]
  PreparedInput input;                    // [kPrivateRows, widest row]
  kernels::Peak* peaks = nullptr;         // [max_logit_rows]
  kernels::TileScratch* tiles = nullptr;  // with has_tiles
};

class Workspace {
 public:
  // Batches of at most this many rows are prepared by every worker for itself.
  static constexpr std::size_t kPrivateRows = 2;
  // Tokens whose heads one attention unit takes together.
  static constexpr std::size_t kQueryTokens = 32;

  static Result<Workspace> create(const Config& config, std::span<const float> rope_factors,
                                  const WorkspaceLimits& limits, const WorkspaceNeeds& needs);

  const WorkspaceLimits& limits() const { return limits_; }
  std::size_t size_bytes() const { return memory_.size_bytes(); }
  std::size_t max_splits() const { return max_splits_; }
  std::size_t padded_value_dim() const { return padded_value_dim_; }
  std::size_t padded_rope_pairs() const { return padded_rope_pairs_; }
  std::size_t key_bias_width() const { return 2 * padded_rope_pairs_ + 16; }

  // Partial results of single-row attention: (row, head, split).
  float* split_out(std::size_t row, std::size_t head, std::size_t split) const {
    return split_out_ + ((row * num_heads_ + head) * max_splits_ + split) * padded_value_dim_;
  }
  float* split_stats(std::size_t row, std::size_t head, std::size_t split) const {
    return split_stats_ + ((row * num_heads_ + head) * max_splits_ + split) * 2;
  }

  // With chooses_pages: which tiles of a split the heads of a group read, by bit.
  std::uint8_t* chosen_tiles(std::size_t row, std::size_t kv_head) const {
    return chosen_tiles_ + (row * num_kv_heads_ + kv_head) * max_splits_;
  }

  float* x = nullptr;
  float* q = nullptr;
  float* k = nullptr;
  float* v = nullptr;
  float* attn = nullptr;
  float* y = nullptr;
  float* h = nullptr;
  float* packed_q = nullptr;  // [rows, heads, packed_query_floats]: with packs_keys
  float* key_bias = nullptr;  // [rows, heads, key_bias_width]: with has_key_bias
  PreparedInput input;
  std::vector<RopeSet> rope_sets;
  std::vector<std::uint32_t> layer_rope_set;
  std::vector<WorkerScratch> workers;

 private:
  void lay_out(const Config& config);
  void fill_angles(const RopeSet& set) const;
  void add_rope_sets(const Config& config, std::span<const float> rope_factors);
  // Takes `count` T from the buffer; in the measuring pass only the size grows.
  template <typename T>
  T* take(std::size_t count);
  PreparedInput take_input(std::size_t rows, std::size_t widest);

  WorkspaceLimits limits_;
  WorkspaceNeeds needs_;
  tensor::Buffer memory_;
  std::size_t used_bytes_ = 0;
  std::size_t num_heads_ = 0;
  std::size_t num_kv_heads_ = 0;
  std::size_t max_splits_ = 0;
  std::size_t padded_value_dim_ = 0;
  std::size_t padded_rope_pairs_ = 0;
  float* split_out_ = nullptr;
  float* split_stats_ = nullptr;
  std::uint8_t* chosen_tiles_ = nullptr;
  std::vector<std::vector<kernels::AttentionRow>> queries_;
};

}  // namespace cicada::model
