// The attention steps of the executor: how queries, KV heads and key ranges are cut into units of
// work. The cuts never change a bit: a row's splits are folded in ascending order whoever made
// them.
#include <algorithm>
#include <bit>
#include <limits>

#include "cicada/model/executor.h"

namespace cicada::model {
namespace {

using kernels::AttentionRow;
using kernels::kSplitKeys;

constexpr auto kSplit = static_cast<std::int64_t>(kSplitKeys);

// Which keys a query at `position` sees besides the sinks: from this one on.
std::int64_t first_key(const LayerConfig& layer, const KvPolicy& policy, std::int64_t position) {
  if (layer.window == 0) return policy.first_key(position);
  return std::max<std::int64_t>(0, position - layer.window + 1);
}

// The keys at the beginning that a query sees too.
std::int64_t sinks(const LayerConfig& layer, const KvPolicy& policy) {
  return layer.window == 0 && policy.window > 0 ? policy.sinks : 0;
}

// Into how many units the heads of a group are cut when there are `units` groups, so that the last
// worker is done soonest. A unit of r heads costs about as much as 3 + 2 r, because what it reads
// is read once for all of them (measured: 1, 1.36, 1.85 and 2.15 for one to four heads).
std::size_t parts_of_group(std::size_t units, std::size_t heads, std::size_t workers) {
  std::size_t best = 1;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (std::size_t parts = 1; parts <= heads; ++parts) {
    const std::size_t turns = (units * parts + workers - 1) / workers;
    const std::size_t cost = turns * (3 + 2 * ((heads + parts - 1) / parts));
    if (cost >= least) continue;
    least = cost;
    best = parts;
  }
  return best;
}

}  // namespace

kernels::AttentionRow Executor::query(const Step& step, std::size_t row, std::uint32_t head) const {
  const std::int64_t position = rows_[row].position;
  return {
      .q = workspace_.q + (row * config_.num_heads + head) * config_.head_dim,
      .packed_q = model_->kv_format().rotates_keys(step.layer) ? packed_query(row, head) : nullptr,
      .position = position,
      .first_key = first_key(config_.layers[step.layer], model_->kv_policy(), position),
      .sinks = sinks(config_.layers[step.layer], model_->kv_policy()),
      .bias = {.reversed = model_->reversed_bias(step.layer, head),
               .limit = config_.rel_pos_max_distance},
      .key_bias = workspace_.key_bias == nullptr ? nullptr : key_bias_query(row, head)};
}

kernels::KeyBias Executor::key_bias(const Step& step) const {
  if (!caches_keys_without_bias(config_, model_->kv_format(), step.layer)) return {};
  const RopeSet& angles = workspace_.rope_sets[workspace_.layer_rope_set[step.layer]];
  return {.tile_angles = angles.tile_angles,
          .place_angles = angles.place_angles,
          .half = workspace_.padded_rope_pairs()};
}

void Executor::turn_back(const Step& step, float* out) const {
  if (!model_->kv_format().rotates_values(step.layer)) return;
  row_kernels_.hadamard(config_.value_dim, out);
}

kernels::CachedHead Executor::cached(const Step& step, const Span& span,
                                     std::uint32_t kv_head) const {
  kernels::CachedHead head = span.sequence->layout().head(step.layer, kv_head);
  head.pages = span.sequence->page_memory();
  return head;
}

void Executor::attend(const Step& step, std::size_t worker) {
  work_.open(worker);
  attend_blocks(step, worker);
  attend_splits(step, worker);
}

// Blocks of a sequence with many rows; 0 of one with one.
std::size_t Executor::blocks_of(const Span& span) {
  return span.num_rows == 1
             ? 0
             : (span.num_rows + Workspace::kQueryTokens - 1) / Workspace::kQueryTokens;
}

// Sequences with many rows: blocks of tokens by KV head, handed out as workers ask for them. Where
// there are few, the queries of each are dealt out too.
void Executor::attend_blocks(const Step& step, std::size_t worker) {
  std::size_t units = 0;
  std::size_t most_rows = 0;
  for (const Span& span : spans_) {
    units += blocks_of(span) * config_.num_kv_heads;
    if (span.num_rows > 1) most_rows = std::max(most_rows, span.num_rows);
  }
  if (units == 0) return;
  const std::size_t parts = parts_of_group(
      units, std::min(most_rows, Workspace::kQueryTokens) * config_.group_size(), pool_->size());
  std::size_t unit = 0;
  std::size_t mine = work_.ticket(worker);
  for (const Span& span : spans_) {
    // Later blocks see more keys: dealt from the back, so that workers end together.
    for (std::size_t block = blocks_of(span); block > 0; --block) {
      const std::size_t begin = (block - 1) * Workspace::kQueryTokens;
      if (step.wanted_rows && !any_wanted(span, begin, Workspace::kQueryTokens)) continue;
      const std::size_t queries =
          std::min(Workspace::kQueryTokens, span.num_rows - begin) * config_.group_size();
      for (std::size_t i = 0; i < config_.num_kv_heads * parts; ++i) {
        if (unit++ != mine) continue;
        const platform::Range part = platform::partition(queries, i % parts, parts);
        if (part.begin < part.end) {
          attend_block(step, span, static_cast<std::uint32_t>(i / parts), span.first_row + begin,
                       part, worker);
        }
        mine = work_.ticket(worker);
      }
    }
  }
}

Executor::SeenSplits Executor::seen_splits(const Step& step, std::int64_t first,
                                           std::int64_t last) const {
  const LayerConfig& layer = config_.layers[step.layer];
  const KvPolicy& policy = model_->kv_policy();
  SeenSplits splits;
  splits.first = static_cast<std::size_t>(first_key(layer, policy, first) / kSplit);
  const auto sink_splits = static_cast<std::size_t>((sinks(layer, policy) + kSplit - 1) / kSplit);
  splits.num_sinks = std::min(sink_splits, splits.first);
  splits.count = splits.num_sinks + static_cast<std::size_t>(last / kSplit) + 1 - splits.first;
  return splits;
}

void Executor::find_shared_splits() {
  const auto decodes = [this](const Span& span) {
    return span.num_rows == 1 && rows_[span.first_row].wants_logits;
  };
  std::size_t run = 1;  // spans that a unit may have to hold
  for (std::size_t i = 1; i < spans_.size(); ++i) {
    Span& span = spans_[i];
    const Span& before = spans_[i - 1];
    if (!decodes(span) || !decodes(before) || run == Workspace::kQueryTokens) {
      run = 1;
      continue;
    }
    const std::size_t page_tokens = span.sequence->layout().page_tokens();
    const auto keys =
        static_cast<std::size_t>(std::min(span.first_position, before.first_position) + 1);
    std::size_t same = 0;
    while ((same + 1) * page_tokens <= keys &&
           span.sequence->page_memory()[same] == before.sequence->page_memory()[same]) {
      ++same;
    }
    span.shared_splits = same * page_tokens / kSplitKeys;
    run = span.shared_splits > 0 ? run + 1 : 1;
  }
}

bool Executor::reads_shared_once(const Step& step) const {
  return config_.layers[step.layer].window == 0 && model_->kv_policy().window == 0;
}

// The splits of a sequence with one row that it reads, those aside that the span before reads for
// it.
Executor::SplitUnits Executor::split_units(const Step& step, const Span& span) const {
  SplitUnits units;
  if (span.num_rows > 1 || (step.wanted_rows && !any_wanted(span, 0, 1))) return units;
  units.splits = seen_splits(step, span.first_position, span.first_position);
  if (reads_shared_once(step)) {
    units.splits.first += span.shared_splits;
    units.splits.count -= span.shared_splits;
  }
  units.parts = parts_of_group(spans_.size() * config_.num_kv_heads * units.splits.count,
                               config_.group_size(), pool_->size());
  units.count = config_.num_kv_heads * units.splits.count * units.parts;
  return units;
}

// Sequences with one row: key ranges by KV head, each worker its own run of them, so that what it
// reads next is known.
void Executor::attend_splits(const Step& step, std::size_t worker) {
  std::vector<SplitUnits>& units = split_units_[worker];
  units.clear();
  std::size_t total = 0;
  for (const Span& span : spans_) total += units.emplace_back(split_units(step, span)).count;
  while (true) {
    const platform::Range range = work_.take(worker, total, 1);
    if (range.begin == range.end) return;
    const SplitUnit unit = split_unit(step, units, range.begin);
    if (tiles_of(step, unit) == 0) continue;
    kernels::AttentionCall call = split_call(step, unit, worker);
    for (std::size_t i = range.begin + 1; i < total; ++i) {
      const SplitUnit next = split_unit(step, units, i);
      const std::uint8_t tiles = tiles_of(step, next);
      if (tiles == 0) continue;
      const auto begin = static_cast<std::int64_t>(next.split) * kSplit;
      const int first = std::countr_zero(tiles);
      call.next = cached(step, *next.span, next.kv_head);
      call.next_begin = begin + first * static_cast<std::int64_t>(kernels::kKeyTile);
      call.next_end = std::min(begin + kSplit, next.span->first_position + 1);
      break;
    }
    attention_.attend(call);
  }
}

std::uint8_t Executor::tiles_of(const Step& step, const SplitUnit& unit) const {
  std::uint8_t tiles = 0;
  for (std::size_t i = 0; i < unit.num_spans; ++i) {
    tiles = static_cast<std::uint8_t>(
        tiles | chosen_tiles(step, unit.span[i].first_row, unit.kv_head, unit.split));
  }
  return tiles;
}

Executor::SplitUnit Executor::split_unit(const Step& step, std::span<const SplitUnits> units,
                                         std::size_t index) const {
  std::size_t span = 0;
  for (; index >= units[span].count; ++span) index -= units[span].count;
  const SplitUnits& cut = units[span];
  const std::size_t unit = index / cut.parts;
  const std::size_t split = cut.splits.at(unit % cut.splits.count);
  std::size_t end = span + 1;
  if (reads_shared_once(step)) {
    while (end < spans_.size() && spans_[end].shared_splits > split) ++end;
  }
  return {.span = &spans_[span],
          .num_spans = end - span,
          .kv_head = static_cast<std::uint32_t>(unit / cut.splits.count),
          .split = split,
          .part = index % cut.parts,
          .parts = cut.parts};
}

bool Executor::any_wanted(const Span& span, std::size_t begin, std::size_t count) const {
  const std::size_t end = std::min(begin + count, span.num_rows);
  const auto wants = [](const Row& row) { return row.wants_logits; };
  return std::any_of(rows_.begin() + static_cast<std::ptrdiff_t>(span.first_row + begin),
                     rows_.begin() + static_cast<std::ptrdiff_t>(span.first_row + end), wants);
}

// Queries [queries.begin, queries.end) of the rows from `first_row` on: those of a KV head's group
// for the first row, then for the next.
void Executor::attend_block(const Step& step, const Span& span, std::uint32_t kv_head,
                            std::size_t first_row, const platform::Range& queries,
                            std::size_t worker) {
  const WorkerScratch& scratch = workspace_.workers[worker];
  const std::size_t padded = workspace_.padded_value_dim();
  const std::uint32_t group = config_.group_size();
  const std::size_t count = queries.end - queries.begin;
  const auto row_of = [&](std::size_t i) { return first_row + (queries.begin + i) / group; };
  const auto head_of = [&](std::size_t i) {
    return kv_head * group + static_cast<std::uint32_t>((queries.begin + i) % group);
  };
  for (std::size_t i = 0; i < count; ++i) {
    AttentionRow& row = scratch.queries[i];
    row = query(step, row_of(i), head_of(i));
    row.out = scratch.partial_out + i * padded;
    row.stats = scratch.partial_stats + i * 2;
  }
  std::fill_n(scratch.total_out, count * padded, 0.0F);
  for (std::size_t i = 0; i < count; ++i) {
    scratch.total_stats[2 * i] = kernels::kNoScore;
    scratch.total_stats[2 * i + 1] = 0.0F;
  }
  kernels::AttentionCall call{.cache = cached(step, span, kv_head),
                              .key_bias = key_bias(step),
                              .rows = scratch.queries.data(),
                              .num_rows = count,
                              .scratch = scratch.attention};
  const std::int64_t last_position = scratch.queries[count - 1].position;
  const SeenSplits seen = seen_splits(step, scratch.queries[0].position, last_position);
  for (std::size_t i = 0; i < seen.count; ++i) {
    call.key_begin = static_cast<std::int64_t>(seen.at(i)) * kSplit;
    call.key_end = std::min(call.key_begin + kSplit, last_position + 1);
    for (std::size_t r = 0; r < count; ++r) {
      scratch.queries[r].tiles = chosen_tiles(step, row_of(r), kv_head, seen.at(i));
    }
    attention_.attend(call);
    for (std::size_t r = 0; r < count; ++r) {
      const AttentionRow& row = scratch.queries[r];
      if (row.tiles == 0) continue;
      attention_.merge(row.out, row.stats, config_.value_dim, scratch.total_out + r * padded,
                       scratch.total_stats + 2 * r);
    }
  }
  const std::size_t width = std::size_t{config_.num_heads} * config_.value_dim;
  for (std::size_t i = 0; i < count; ++i) {
    float* out = workspace_.attn + row_of(i) * width + std::size_t{head_of(i)} * config_.value_dim;
    attention_.finish(scratch.total_out + i * padded, scratch.total_stats + 2 * i,
                      config_.value_dim, out);
    turn_back(step, out);
  }
}

kernels::AttentionCall Executor::split_call(const Step& step, const SplitUnit& unit,
                                            std::size_t worker) {
  const WorkerScratch& scratch = workspace_.workers[worker];
  const Span& span = *unit.span;
  const std::size_t group = config_.group_size();
  const platform::Range heads = platform::partition(group, unit.part, unit.parts);
  std::size_t count = 0;
  for (const Span& own : std::span(unit.span, unit.num_spans)) {
    const std::size_t span_idx = row_span_[own.first_row];
    for (std::size_t g = heads.begin; g < heads.end; ++g, ++count) {
      const std::size_t head = unit.kv_head * group + g;
      AttentionRow& row = scratch.queries[count];
      row = query(step, own.first_row, static_cast<std::uint32_t>(head));
      row.tiles = chosen_tiles(step, own.first_row, unit.kv_head, unit.split);
      row.out = workspace_.split_out(span_idx, head, unit.split);
      row.stats = workspace_.split_stats(span_idx, head, unit.split);
    }
  }
  const auto key_begin = static_cast<std::int64_t>(unit.split) * kSplit;
  return {.cache = cached(step, span, unit.kv_head),
          .key_bias = key_bias(step),
          .key_begin = key_begin,
          .key_end = std::min(key_begin + kSplit, span.first_position + 1),
          .rows = scratch.queries.data(),
          .num_rows = count,
          .scratch = scratch.attention};
}

void Executor::fold_splits(const Step& step, std::size_t row, std::size_t worker) {
  const WorkerScratch& scratch = workspace_.workers[worker];
  const std::size_t span_idx = row_span_[row];
  const std::int64_t position = rows_[row].position;
  const SeenSplits seen = seen_splits(step, position, position);
  for (std::size_t head = 0; head < config_.num_heads; ++head) {
    std::fill_n(scratch.total_out, workspace_.padded_value_dim(), 0.0F);
    float stats[2] = {kernels::kNoScore, 0.0F};
    for (std::size_t i = 0; i < seen.count; ++i) {
      const std::size_t split = seen.at(i);
      const auto kv_head = static_cast<std::uint32_t>(head / config_.group_size());
      if (chosen_tiles(step, row, kv_head, split) == 0) continue;
      attention_.merge(workspace_.split_out(span_idx, head, split),
                       workspace_.split_stats(span_idx, head, split), config_.value_dim,
                       scratch.total_out, stats);
    }
    float* out = scratch.row + head * config_.value_dim;
    attention_.finish(scratch.total_out, stats, config_.value_dim, out);
    turn_back(step, out);
  }
}

}  // namespace cicada::model
