// The step that chooses which pages of the cache a decoded token reads (KvPolicy::pages).
//
// For every row and group of heads: the first tile of 64 keys, the row's own and the one before it,
// and of the others those with the greatest scores. A tile's score is the most that its bounds
// allow it, relative to the most that they allow any tile, for the head of the group that gains
// most. The choice depends on the row's query and on the keys before it alone, so it is the same in
// every batch.
#include <algorithm>
#include <numeric>

#include "cicada/model/executor.h"

namespace cicada::model {
namespace {

using kernels::kKeyTile;
using kernels::kNoScore;
using kernels::kSplitTiles;

constexpr std::uint8_t kAllTiles = 0xFF;

void mark(std::uint8_t* chosen, std::size_t tile) {
  chosen[tile / kSplitTiles] =
      static_cast<std::uint8_t>(chosen[tile / kSplitTiles] | 1U << (tile % kSplitTiles));
}

// Never NaN: an order is made of it.
float ordered(float score) { return score > kNoScore ? std::min(score, -kNoScore) : kNoScore; }

}  // namespace

// One worker does all of a sequence's rows for a KV head, so the bounds that they make are there
// when they choose.
void Executor::choose_pages(const Step& step, std::size_t worker) {
  work_.open(worker);
  while (true) {
    const platform::Range range = work_.take(worker, spans_.size() * config_.num_kv_heads, 1);
    if (range.begin == range.end) return;
    const Span& span = spans_[range.begin / config_.num_kv_heads];
    const auto kv_head = static_cast<std::uint32_t>(range.begin % config_.num_kv_heads);
    bound_new_tiles(step, span, kv_head);
    for (std::size_t row = span.first_row; row < span.first_row + span.num_rows; ++row) {
      choose_tiles(step, span, row, kv_head, worker);
    }
  }
}

// Bounds of the tiles whose last position is in the batch.
void Executor::bound_new_tiles(const Step& step, const Span& span, std::uint32_t kv_head) const {
  const kernels::CachedHead cache = cached(step, span, kv_head);
  const auto begin = static_cast<std::size_t>(span.first_position);
  for (std::size_t tile = begin / kKeyTile; (tile + 1) * kKeyTile <= begin + span.num_rows;
       ++tile) {
    attention_.bound_keys(cache, tile, span.sequence->page_of((tile + 1) * kKeyTile - 1));
  }
}

void Executor::choose_tiles(const Step& step, const Span& span, std::size_t row,
                            std::uint32_t kv_head, std::size_t worker) {
  std::uint8_t* const chosen = workspace_.chosen_tiles(row, kv_head);
  const std::size_t num_tiles = static_cast<std::size_t>(rows_[row].position) / kKeyTile + 1;
  const std::size_t num_splits = (num_tiles + kSplitTiles - 1) / kSplitTiles;
  const auto most = static_cast<std::size_t>(model_->kv_policy().pages);
  if (rows_[row].role == Role::kPrefill || num_tiles <= most) {
    std::fill_n(chosen, num_splits, kAllTiles);
    return;
  }
  const WorkerScratch& scratch = workspace_.workers[worker];
  // Of tiles [1, end), which are complete: what one head says, and the most that any says.
  const std::size_t end = num_tiles - 2;
  float* const of_head = scratch.tile_scores;
  float* const scores = of_head + workspace_.max_splits() * kSplitTiles;
  std::fill_n(scores, end, kNoScore);
  kernels::TileBoundsCall call{.cache = cached(step, span, kv_head),
                               .key_bias = key_bias(step),
                               .tile_begin = 1,
                               .tile_end = end,
                               .scores = of_head};
  for (std::uint32_t g = 0; g < config_.group_size(); ++g) {
    const kernels::AttentionRow query_row = query(step, row, kv_head * config_.group_size() + g);
    call.row = &query_row;
    attention_.score_bounds(call);
    const float top = ordered(*std::max_element(
        of_head + 1, of_head + end, [](float a, float b) { return ordered(a) < ordered(b); }));
    for (std::size_t tile = 1; tile < end; ++tile) {
      scores[tile] = std::max(scores[tile], ordered(of_head[tile]) - top);
    }
  }
  std::uint32_t* const order = scratch.tile_order;
  std::iota(order, order + end - 1, 1U);
  const std::size_t wanted = most - 3;
  std::nth_element(order, order + wanted, order + end - 1,
                   [scores](std::uint32_t a, std::uint32_t b) {
                     return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
                   });
  std::fill_n(chosen, num_splits, std::uint8_t{0});
  mark(chosen, 0);
  mark(chosen, num_tiles - 2);
  mark(chosen, num_tiles - 1);
  for (std::size_t i = 0; i < wanted; ++i) mark(chosen, order[i]);
}

std::uint8_t Executor::chosen_tiles(const Step& step, std::size_t row, std::uint32_t kv_head,
                                    std::size_t split) const {
  if (model_->kv_policy().pages == 0 || config_.layers[step.layer].window > 0) return kAllTiles;
  return workspace_.chosen_tiles(row, kv_head)[split];
}

}  // namespace cicada::model
