// What a model file says about its architecture, checked and bounded, in one form for every
// architecture. Each architecture has one file (arch/<name>.cc) that fills a Config; everything
// after that (tensors, plan, execution) only reads it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cicada/base/result.h"
#include "cicada/formats/model_file.h"
#include "cicada/kernels/matmul/matmul.h"

namespace cicada::model {

// What differs from layer to layer.
struct LayerConfig {
  double rope_base = 10000.0;
  double rope_factor = 1.0;  // positions are divided by it (linear scaling)
  std::uint32_t window = 0;  // a query sees this many keys up to itself; 0: all
};

struct Config {
  std::string architecture;
  std::uint32_t num_layers = 0;
  std::uint32_t hidden = 0;  // width of the residual stream
  std::uint32_t ffn = 0;     // width inside the feed-forward part
  std::uint32_t num_heads = 0;
  std::uint32_t num_kv_heads = 0;  // divides num_heads
  std::uint32_t head_dim = 0;      // of queries and keys
  std::uint32_t value_dim = 0;     // of values
  std::uint32_t rope_dim = 0;      // leading dimensions of a head that RoPE turns; even
  std::uint32_t vocab = 0;
  std::uint32_t trained_context = 0;  // tokens
  float norm_epsilon = 0.0F;
  float query_scale = 0.0F;      // scores are q · k times this
  float embedding_scale = 1.0F;  // embeddings are multiplied by this
  kernels::Activation activation = kernels::Activation::kSilu;
  formats::RopeLayout rope_layout = formats::RopeLayout::kHalves;  // of the file's q and k rows
  bool has_qkv_bias = false;
  bool has_qk_norm = false;       // RMS norm on each head of q and k
  bool has_post_norms = false;    // RMS norm on what attention and feed-forward add
  bool is_tied = false;           // the head is the embedding
  std::uint32_t rel_pos_dim = 0;  // cicada-v1: buckets of the relative-position layer; 0: none
  std::uint32_t rel_pos_max_distance = 0;  // cicada-v1: distance at which the last bucket begins
  std::vector<LayerConfig> layers;

  std::uint32_t group_size() const { return num_heads / num_kv_heads; }
};

// Reads and checks the configuration. Errors: kUnsupported for an architecture that is not known
// (naming the known ones) and for features that are not built; kCorrupt for numbers that make no
// sense.
Result<Config> read_config(const formats::ModelFile& file);

// Names of the architectures in this build.
std::vector<std::string_view> known_architectures();

// The relative-position bucket of a distance d >= 0 (SPEC, cicada-v1): d below half, then
// logarithmic up to max_distance; always below rel_pos_dim.
std::uint32_t rel_pos_bucket(std::uint32_t distance, std::uint32_t rel_pos_dim,
                             std::uint32_t max_distance);

}  // namespace cicada::model
