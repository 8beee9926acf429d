#include "cicada/model/workspace.h"

#include <algorithm>
#include <cmath>

namespace cicada::model {

template <typename T>
T* Workspace::take(std::size_t count) {
  constexpr std::size_t kAlignment = 64;
  const std::size_t at = used_bytes_;
  used_bytes_ += (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
  if (memory_.size_bytes() == 0) return nullptr;
  return reinterpret_cast<T*>(memory_.data() + at);
}

PreparedInput Workspace::take_input(std::size_t rows, std::size_t widest) {
  return {.int8 = take<kernels::QuantBlock>(rows * (widest / 32)),
          .int15 = take<kernels::WideQuantBlock>(rows * (widest / 32)),
          .f32 = take<float>(rows * widest),
          .bf16 = needs_.has_tiles ? take<std::uint16_t>(kernels::bf16_elements(rows, widest))
                                   : nullptr};
}

Result<Workspace> Workspace::create(const Config& config, std::span<const float> rope_factors,
                                    const WorkspaceLimits& limits, const WorkspaceNeeds& needs) {
  Workspace w;
  w.limits_ = limits;
  w.needs_ = needs;
  w.num_heads_ = config.num_heads;
  w.num_kv_heads_ = config.num_kv_heads;
  w.max_splits_ = limits.max_context / kernels::kSplitKeys + 1;
  w.padded_value_dim_ = (std::size_t{config.value_dim} + 15) / 16 * 16;
  w.padded_rope_pairs_ = (std::size_t{config.rope_dim} / 2 + 15) / 16 * 16;
  w.add_rope_sets(config, rope_factors);
  w.queries_.resize(needs.num_workers);
  for (auto& list : w.queries_) list.resize(kQueryTokens * config.group_size());
  w.lay_out(config);  // measures
  auto memory = tensor::Buffer::create(w.used_bytes_);
  if (!memory) return fail(std::move(memory).error().with_context("working memory"));
  w.memory_ = std::move(*memory);
  w.used_bytes_ = 0;
  w.lay_out(config);
  if (needs.has_key_bias) {
    for (const RopeSet& set : w.rope_sets) w.fill_angles(set);
  }
  return w;
}

void Workspace::add_rope_sets(const Config& config, std::span<const float> rope_factors) {
  for (const LayerConfig& layer : config.layers) {
    std::uint32_t set = 0;
    while (set < rope_sets.size() &&
           (rope_sets[set].base != layer.rope_base || rope_sets[set].factor != layer.rope_factor)) {
      ++set;
    }
    layer_rope_set.push_back(set);
    if (set < rope_sets.size()) continue;
    RopeSet& added = rope_sets.emplace_back();
    added.base = layer.rope_base;
    added.factor = layer.rope_factor;
    for (std::uint32_t i = 0; i < config.rope_dim / 2; ++i) {
      const double exponent = -2.0 * i / config.rope_dim;
      const double own_factor = rope_factors.empty() ? 1.0 : static_cast<double>(rope_factors[i]);
      added.inverse_frequency.push_back(std::pow(layer.rope_base, exponent) / layer.rope_factor /
                                        own_factor);
    }
  }
}

// Pairs beyond the model's stay zero: their cosines and sines are times zero.
void Workspace::fill_angles(const RopeSet& set) const {
  const std::size_t pairs = padded_rope_pairs_;
  for (std::size_t i = 0; i < set.inverse_frequency.size(); ++i) {
    for (std::size_t place = 0; place < kernels::kKeyTile; ++place) {
      const double angle = static_cast<double>(place) * set.inverse_frequency[i];
      set.place_angles[i * kernels::kKeyTile + place] = static_cast<float>(std::cos(angle));
      set.place_angles[(pairs + i) * kernels::kKeyTile + place] =
          static_cast<float>(std::sin(angle));
    }
    for (std::size_t tile = 0; tile <= limits_.max_context / kernels::kKeyTile; ++tile) {
      const double angle = static_cast<double>(tile * kernels::kKeyTile) * set.inverse_frequency[i];
      set.tile_angles[tile * 2 * pairs + i] = static_cast<float>(std::cos(angle));
      set.tile_angles[(tile * 2 + 1) * pairs + i] = static_cast<float>(std::sin(angle));
    }
  }
}

void Workspace::lay_out(const Config& config) {
  const std::size_t rows = limits_.max_rows;
  const std::size_t attn_width = std::size_t{config.num_heads} * config.value_dim;
  const std::size_t q_width = std::size_t{config.num_heads} * config.head_dim;
  const std::size_t widest =
      std::max({std::size_t{config.hidden}, std::size_t{config.ffn}, attn_width, q_width});
  x = take<float>(rows * config.hidden);
  q = take<float>(rows * q_width);
  k = take<float>(rows * config.num_kv_heads * config.head_dim);
  v = take<float>(rows * config.num_kv_heads * config.value_dim);
  attn = take<float>(rows * attn_width);
  y = take<float>(rows * config.hidden);
  h = take<float>(rows * config.ffn);
  if (needs_.packs_keys) {
    packed_q = take<float>(rows * config.num_heads * kernels::packed_query_floats(config.head_dim));
  }
  if (needs_.has_key_bias) key_bias = take<float>(rows * config.num_heads * key_bias_width());
  input = take_input(rows, widest);
  for (RopeSet& set : rope_sets) {
    set.cosines = take<float>(rows * config.rope_dim / 2);
    set.sines = take<float>(rows * config.rope_dim / 2);
    if (!needs_.has_key_bias) continue;
    const std::size_t tiles = limits_.max_context / kernels::kKeyTile + 1;
    set.tile_angles = take<float>(tiles * 2 * padded_rope_pairs_);
    set.place_angles = take<float>(2 * padded_rope_pairs_ * kernels::kKeyTile);
  }
  const std::size_t splits = limits_.max_sequences * config.num_heads * max_splits_;
  split_out_ = take<float>(splits * padded_value_dim_);
  split_stats_ = take<float>(splits * 2);
  const std::size_t tiles = max_splits_ * kernels::kSplitTiles;
  if (needs_.chooses_pages) {
    chosen_tiles_ = take<std::uint8_t>(rows * config.num_kv_heads * max_splits_);
  }
  workers.resize(needs_.num_workers);
  for (std::size_t i = 0; i < workers.size(); ++i) {
    WorkerScratch& worker = workers[i];
    const std::size_t queries = queries_[i].size();
    worker.queries = queries_[i];
    worker.row = take<float>(widest);
    worker.attention =
        take<float>(kernels::attention_scratch_floats(config.head_dim, config.value_dim, queries));
    worker.partial_out = take<float>(queries * padded_value_dim_);
    worker.partial_stats = take<float>(queries * 2);
    worker.total_out = take<float>(queries * padded_value_dim_);
    worker.total_stats = take<float>(queries * 2);
    if (needs_.chooses_pages) {
      worker.tile_scores = take<float>(2 * tiles);
      worker.tile_order = take<std::uint32_t>(tiles);
    }
    worker.input = take_input(kPrivateRows, widest);
    worker.peaks = take<kernels::Peak>(std::max(limits_.max_logit_rows, limits_.max_rows));
    if (needs_.has_tiles) worker.tiles = take<kernels::TileScratch>(1);
  }
}

}  // namespace cicada::model
