// A model's weights in memory: matrices in the packed layout in one buffer, vectors as float.
// Lifetime: matrices and vectors are views into the Weights that own the buffers.
// Threads: read-only after loading.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cicada/base/result.h"
#include "cicada/formats/model_file.h"
#include "cicada/kernels/matmul/matmul.h"
#include "cicada/model/config.h"
#include "cicada/platform/thread_pool.h"
#include "cicada/tensor/buffer.h"

namespace cicada::model {

struct LayerWeights {
  kernels::PackedWeights q, k, v, o, gate, up, down;
  std::span<const float> attn_norm, ffn_norm;                 // [hidden]
  std::span<const float> q_bias, k_bias, v_bias;              // empty: none
  std::span<const float> q_norm, k_norm;                      // [head_dim], empty: none
  std::span<const float> post_attention_norm, post_ffn_norm;  // [hidden], empty: none
  std::span<const float> rel_pos;                             // [heads, rel_pos_dim], empty: none
  // Exactly zero in the file, so that the part adds nothing to the residual stream.
  bool is_attention_zero = false;
  bool is_ffn_zero = false;
  bool is_rel_pos_zero = false;
};

struct LoadOptions {
  bool elide = true;  // leave parts that are exactly zero out of memory
  // Called now and then with bytes packed so far and in all; returning false cancels.
  std::function<bool(std::uint64_t done, std::uint64_t total)> progress;
};

class Weights {
 public:
  // Packs every tensor, in parallel, and gives the file's pages back as it goes. Rows of q and k
  // that the file interleaves for RoPE are put in half-split order (docs/numerics.md). Errors:
  // kCorrupt lists missing and misshapen tensors; kOutOfMemory; kCancelled.
  static Result<Weights> load(const formats::ModelFile& file, const Config& config,
                              platform::ThreadPool& pool, const LoadOptions& options);

  const std::vector<LayerWeights>& layers() const { return layers_; }
  const kernels::PackedWeights& embedding() const { return embedding_; }
  const kernels::PackedWeights& head() const { return head_; }
  std::span<const float> output_norm() const { return output_norm_; }
  std::span<const float> rope_factors() const { return rope_factors_; }  // [rope_dim / 2], empty: 1
  // Keeps the layers' matrices as panels of tiles too (matmul.h), as far as their types allow it: 2
  // bytes a weight. Errors: kOutOfMemory with the bytes wanted and free.
  Result<void> keep_panels(const kernels::MatmulKernels& kernels, platform::ThreadPool& pool);

  std::size_t panel_bytes() const { return panels_.size_bytes(); }
  std::size_t packed_bytes() const { return matrices_.size_bytes(); }
  std::span<const std::byte> packed() const { return {matrices_.data(), packed_bytes()}; }

 private:
  friend class WeightLoader;

  tensor::Buffer matrices_;
  tensor::Buffer vectors_;
  tensor::Buffer panels_;
  std::vector<LayerWeights> layers_;
  kernels::PackedWeights embedding_;
  kernels::PackedWeights head_;
  std::span<const float> output_norm_;
  std::span<const float> rope_factors_;
};

// True when every element of a tensor is exactly 0 (either sign).
bool is_exactly_zero(const formats::ModelFile& file, const formats::TensorInfo& tensor);

// Row r of a matrix whose heads of `head_dim` rows are kept half-split lies at file row order[r] of
// the interleaved file: pairs (2i, 2i+1) of the first `rope_dim` rows become (i, i + rope_dim / 2).
std::vector<std::uint32_t> half_split_order(std::size_t rows, std::size_t head_dim,
                                            std::size_t rope_dim);

}  // namespace cicada::model
