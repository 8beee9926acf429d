#include "cicada/model/executor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "cicada/base/check.h"
#include "cicada/kernels/matmul/layout.h"
#include "cicada/kernels/matmul/pack.h"

namespace cicada::model {
namespace {

using platform::partition;
using platform::Range;

// The most groups of 16 weight rows that a worker takes at once.
constexpr std::size_t kGroupsTaken = 4;

// The part of [begin, begin + count) that lies in `range`, relative to begin.
Range intersect(Range range, std::size_t begin, std::size_t count) {
  const std::size_t low = std::clamp(range.begin, begin, begin + count) - begin;
  const std::size_t high = std::clamp(range.end, begin, begin + count) - begin;
  return {low, high};
}

}  // namespace

Result<std::unique_ptr<Executor>> Executor::create(const Model& model, platform::ThreadPool& pool,
                                                   const WorkspaceLimits& limits) {
  CICADA_ASSIGN(Workspace workspace,
                Workspace::create(model.config(), model.weights().rope_factors(), limits,
                                  {.num_workers = pool.size(),
                                   .has_tiles = platform::has_tiles(model.level()),
                                   .has_key_bias = model.caches_any_key_without_bias(),
                                   .packs_keys = model.kv_format().packs_any_keys(),
                                   .chooses_pages = model.kv_policy().pages > 0}));
  return std::unique_ptr<Executor>(new Executor(model, pool, std::move(workspace)));
}

Executor::Executor(const Model& model, platform::ThreadPool& pool, Workspace workspace)
    : model_(&model),
      config_(model.config()),
      pool_(&pool),
      matmul_(kernels::matmul_kernels(model.level())),
      row_kernels_(kernels::row_kernels(model.level())),
      attention_(kernels::attention_kernels(model.level())),
      workspace_(std::move(workspace)),
      work_(pool.size()) {
  rows_.reserve(limits().max_rows);
  row_span_.reserve(limits().max_rows);
  wanting_.reserve(limits().max_rows);
  spans_.reserve(limits().max_sequences);
  split_units_.resize(pool.size());
  for (auto& units : split_units_) units.reserve(limits().max_sequences);
  peaks_.resize(std::max(limits().max_logit_rows, limits().max_rows));
}

Result<void> Executor::check_batch(std::span<const Row> rows, std::size_t num_sequences) const {
  if (rows.empty() || rows.size() > limits().max_rows) {
    return fail(Code::kInvalidArgument, "a batch of {} tokens, 1 to {} is allowed", rows.size(),
                limits().max_rows);
  }
  if (num_sequences > limits().max_sequences) {
    return fail(Code::kInvalidArgument, "a batch of {} sequences, at most {} is allowed",
                num_sequences, limits().max_sequences);
  }
  for (const Row& row : rows) {
    if (row.token.value < 0 || static_cast<std::uint32_t>(row.token.value) >= config_.vocab) {
      return fail(Code::kInvalidArgument, "token id {} is outside the vocabulary of {}",
                  row.token.value, config_.vocab);
    }
    if (row.position < 0 || static_cast<std::size_t>(row.position) >= limits().max_context) {
      return fail(Code::kInvalidArgument, "position {} is outside the context of {} tokens",
                  row.position, limits().max_context);
    }
    CICADA_CHECK(row.sequence < num_sequences, "a row's sequence is in the batch");
  }
  return {};
}

void Executor::find_spans(std::span<const Row> rows, std::span<kv::Sequence* const> sequences) {
  rows_.assign(rows.begin(), rows.end());
  spans_.clear();
  row_span_.clear();
  wanting_.clear();
  num_prefill_rows_ = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].role == Role::kPrefill) {
      CICADA_CHECK(num_prefill_rows_ == r, "rows of the prefill role come first");
      ++num_prefill_rows_;
    }
    const bool continues = r > 0 && rows[r].sequence == rows[r - 1].sequence;
    if (continues) {
      CICADA_CHECK(rows[r].role == rows[r - 1].role, "a sequence's rows have one role");
      CICADA_CHECK(rows[r].position == rows[r - 1].position + 1, "positions of a span ascend");
      ++spans_.back().num_rows;
    } else {
      CICADA_CHECK(spans_.size() < limits().max_sequences, "rows of a sequence are consecutive");
      const kv::Sequence* sequence = sequences[rows[r].sequence];
      spans_.push_back({.sequence = sequence,
                        .first_row = r,
                        .num_rows = 1,
                        .first_position = rows[r].position});
    }
    CICADA_CHECK(
        spans_.back().sequence->capacity_tokens() > static_cast<std::size_t>(rows[r].position),
        "a sequence has room for its rows");
    row_span_.push_back(static_cast<std::uint32_t>(spans_.size() - 1));
    if (rows[r].wants_logits) wanting_.push_back(static_cast<std::uint32_t>(r));
  }
  find_shared_splits();
}

Result<void> Executor::run(std::span<const Row> rows, std::span<kv::Sequence* const> sequences,
                           std::span<float> logits) {
  CICADA_TRY(check_batch(rows, sequences.size()));
  find_spans(rows, sequences);
  const std::size_t num_steps = model_->plan().steps.size();
  Region region{.rows = rows_, .step_end = num_steps - 2};
  if (!logits.empty() && !wanting_.empty()) {
    CICADA_CHECK(logits.size() == wanting_.size() * config_.vocab, "shape of the logits");
    region.head_count = wanting_.size();
    region.logits = logits.data();
    region.step_end = num_steps;
  }
  run_region(region);
  return {};
}

void Executor::head(std::size_t first, std::size_t count, std::span<float> logits) {
  CICADA_CHECK(first + count <= wanting_.size(), "rows that want logits");
  CICADA_CHECK(logits.size() == count * config_.vocab, "shape of the logits");
  const std::size_t num_steps = model_->plan().steps.size();
  run_region({.rows = rows_,
              .head_begin = first,
              .head_count = count,
              .logits = logits.data(),
              .step_begin = num_steps - 2,
              .step_end = num_steps});
}

void Executor::run_region(const Region& region) {
  const std::vector<Step>& steps = model_->plan().steps;
  pool_->run([&](std::size_t worker) {
    std::fill_n(workspace_.workers[worker].peaks, region.head_count, kernels::Peak());
    for (std::size_t i = region.step_begin; i < region.step_end; ++i) {
      run_step(steps[i], region, worker);
    }
  });
  fold_peaks(region);
}

void Executor::run_step(const Step& step, const Region& region, std::size_t worker) {
  bool meets = step.barrier_after;
  switch (step.kind) {
    case StepKind::kEmbed:
      embed(region, worker);
      break;
    case StepKind::kPrepareNorm:
    case StepKind::kPrepareAttention:
    case StepKind::kPrepareGlu:
    case StepKind::kPrepareHead:
      prepare(step, region, worker);
      meets = !is_private(rows_of(step, region));
      break;
    case StepKind::kProduct:
    case StepKind::kHead:
      product(step, region, worker);
      break;
    case StepKind::kKeepWanted:
      keep_wanted(worker);
      meets = wanting_.size() != region.rows.size();
      break;
    case StepKind::kRotateAndStore:
      rotate_and_store(step, region, worker);
      break;
    case StepKind::kChoosePages:
      choose_pages(step, worker);
      break;
    case StepKind::kAttend:
      attend(step, worker);
      break;
    case StepKind::kAddNormed:
      add_normed(step, region, worker);
      break;
    case StepKind::kGlu:
      glu(step, region, worker);
      break;
  }
  if (meets) pool_->barrier().wait();
}

std::size_t Executor::rows_of(const Step& step, const Region& region) const {
  if (step.kind == StepKind::kPrepareHead || step.kind == StepKind::kHead) {
    return region.head_count;
  }
  return step.wanted_rows ? wanting_.size() : region.rows.size();
}

Executor::Sections Executor::sections_of(const Step& step, const Region& region) const {
  const std::size_t rows = rows_of(step, region);
  const std::size_t prefill = step.splits_roles ? num_prefill_rows_ : 0;
  Sections sections;
  sections.count = 0;
  if (prefill > 0) sections.list[sections.count++] = {0, prefill, true};
  if (prefill < rows) sections.list[sections.count++] = {prefill, rows - prefill, false};
  return sections;
}

void Executor::embed(const Region& region, std::size_t worker) {
  const kernels::PackedWeights& table = model_->weights().embedding();
  const std::size_t packed = kernels::packed_bytes(table.dtype, table.rows, table.columns);
  const Range range = partition(region.rows.size(), worker, pool_->size());
  const std::size_t half = config_.rope_dim / 2;
  for (std::size_t r = range.begin; r < range.end; ++r) {
    float* x = workspace_.x + r * config_.hidden;
    kernels::unpack_row(table.dtype, {table.data, packed},
                        static_cast<std::size_t>(region.rows[r].token.value), {x, config_.hidden});
    if (config_.embedding_scale != 1.0F) {
      row_kernels_.scale(config_.embedding_scale, config_.hidden, x);
    }
    // Angles in double: exact to the last bit of float at any position.
    for (const RopeSet& set : workspace_.rope_sets) {
      for (std::size_t i = 0; i < half; ++i) {
        const double angle =
            static_cast<double>(region.rows[r].position) * set.inverse_frequency[i];
        set.cosines[r * half + i] = static_cast<float>(std::cos(angle));
        set.sines[r * half + i] = static_cast<float>(std::sin(angle));
      }
    }
  }
}

void Executor::prepare(const Step& step, const Region& region, std::size_t worker) {
  const std::size_t rows = rows_of(step, region);
  const bool is_own = is_private(rows);
  const PreparedInput input = is_own ? workspace_.workers[worker].input : workspace_.input;
  const Range range = is_own ? Range{0, rows} : partition(rows, worker, pool_->size());
  const std::size_t offset = step.kind == StepKind::kPrepareHead ? region.head_begin : 0;
  for (const Section& section : sections_of(step, region)) {
    const Range own = intersect(range, section.first, section.count);
    for (std::size_t i = own.begin; i < own.end; ++i) {
      prepare_row(step, offset + section.first + i, section, i, worker, input);
    }
  }
}

void Executor::prepare_row(const Step& step, std::size_t row, const Section& section,
                           std::size_t index, std::size_t worker, PreparedInput input) {
  const float* source = nullptr;
  std::size_t width = config_.hidden;
  if (step.kind == StepKind::kPrepareGlu) {
    width = config_.ffn;
    source = workspace_.h + row * width;
  } else if (step.kind == StepKind::kPrepareAttention) {
    width = std::size_t{config_.num_heads} * config_.value_dim;
    const std::size_t token = step.wanted_rows ? wanting_[row] : row;
    if (spans_[row_span_[token]].num_rows == 1) {
      fold_splits(step, token, worker);
      source = workspace_.workers[worker].row;
    } else {
      source = workspace_.attn + token * width;
    }
  } else {
    float* normed = workspace_.workers[worker].row;
    row_kernels_.rms_norm(workspace_.x + row * width, step.gain.data(), config_.norm_epsilon, width,
                          normed);
    source = normed;
  }
  const PreparedForms& forms = section.is_prefill ? step.prefill_forms : step.forms;
  const std::size_t first =
      kernels::quant_block_index(section.count, width / kernels::kBlockColumns, index, 0);
  const std::size_t stride = kernels::tile_width(section.count, index / kernels::kTileRows);
  if (forms.int8) row_kernels_.quantize(source, width, input.int8 + first, stride);
  if (forms.int15) row_kernels_.quantize_wide(source, width, input.int15 + first, stride);
  if (forms.f32) std::memcpy(input.f32 + index * width, source, width * sizeof(float));
  if (forms.bf16) {
    row_kernels_.to_bf16(source, width, input.bf16 + kernels::bf16_row_index(width, index));
  }
}

kernels::Activations Executor::activations(const Product& product, const Section& section,
                                           bool is_own, std::size_t worker) const {
  const PreparedInput& input = is_own ? workspace_.workers[worker].input : workspace_.input;
  const kernels::InputFormat format = section.is_prefill ? product.prefill_input : product.input;
  return {.format = format,
          .rows = section.count,
          .columns = product.w.columns,
          .data = input.data(format)};
}

// The buffer that a product writes, of rows as wide as the product.
float* Executor::output(const Product& product, const Region& region) const {
  switch (product.out) {
    case BufferId::kX:
      return workspace_.x;
    case BufferId::kQ:
      return workspace_.q;
    case BufferId::kK:
      return workspace_.k;
    case BufferId::kV:
      return workspace_.v;
    case BufferId::kY:
      return workspace_.y;
    case BufferId::kH:
      return workspace_.h;
    case BufferId::kLogits:
      return region.logits;
    case BufferId::kNone:
      break;
  }
  return nullptr;
}

void Executor::product(const Step& step, const Region& region, std::size_t worker) {
  const Sections sections = sections_of(step, region);
  const bool is_own = is_private(rows_of(step, region));
  std::size_t groups_of_all = 0;
  for (const Product& product : step.products) {
    groups_of_all += kernels::num_groups(product.w.rows);
  }
  const std::size_t most = step.splits_roles ? kernels::kTileScratchGroups : kGroupsTaken;
  work_.open(worker);
  while (true) {
    const Range range = work_.take(worker, sections.count * groups_of_all, most);
    if (range.begin == range.end) return;
    std::size_t begin = 0;
    for (const Section& section : sections) {
      for (const Product& product : step.products) {
        const std::size_t groups = kernels::num_groups(product.w.rows);
        const Range own = intersect(range, begin, groups);
        begin += groups;
        if (own.begin == own.end) continue;
        matmul_.matmul({.w = product.w,
                        .x = activations(product, section, is_own, worker),
                        .bias = product.bias,
                        .y = output(product, region) + section.first * product.w.rows,
                        .ldy = product.w.rows,
                        .epilogue = product.epilogue,
                        .scratch = workspace_.workers[worker].tiles},
                       own.begin, own.end);
        if (product.out == BufferId::kLogits) note_peaks(region, own, worker);
      }
    }
  }
}

void Executor::note_peaks(const Region& region, const Range& groups, std::size_t worker) {
  const std::size_t begin = groups.begin * kernels::kGroupRows;
  const std::size_t end = std::min<std::size_t>(groups.end * kernels::kGroupRows, config_.vocab);
  for (std::size_t i = 0; i < region.head_count; ++i) {
    row_kernels_.note_peak(region.logits + i * config_.vocab + begin, end - begin,
                           static_cast<std::uint32_t>(begin), workspace_.workers[worker].peaks[i]);
  }
}

void Executor::fold_peaks(const Region& region) {
  for (std::size_t i = 0; i < region.head_count; ++i) {
    kernels::Peak& peak = peaks_[i];
    peak = {};
    for (const WorkerScratch& worker : workspace_.workers) {
      const bool is_damaged = peak.is_damaged || worker.peaks[i].is_damaged;
      if (peak.is_below(worker.peaks[i])) peak = worker.peaks[i];
      peak.is_damaged = is_damaged;
    }
  }
}

void Executor::glu(const Step& step, const Region& region, std::size_t worker) {
  const Sections sections = sections_of(step, region);
  const bool is_own = is_private(rows_of(step, region));
  const std::size_t groups = kernels::num_groups(step.products[0].w.rows);
  work_.open(worker);
  while (true) {
    const Range range = work_.take(worker, sections.count * groups, kGroupsTaken);
    if (range.begin == range.end) return;
    std::size_t begin = 0;
    for (const Section& section : sections) {
      const Range own = intersect(range, begin, groups);
      begin += groups;
      if (own.begin == own.end) continue;
      matmul_.glu({.gate = step.products[0].w,
                   .up = step.products[1].w,
                   .gate_x = activations(step.products[0], section, is_own, worker),
                   .up_x = activations(step.products[1], section, is_own, worker),
                   .y = workspace_.h + section.first * config_.ffn,
                   .ldy = config_.ffn,
                   .activation = config_.activation,
                   .scratch = workspace_.workers[worker].tiles},
                  own.begin, own.end);
    }
  }
}

// Ascending, so no row is overwritten before it has moved.
void Executor::keep_wanted(std::size_t worker) {
  if (worker != 0) return;
  for (std::size_t i = 0; i < wanting_.size(); ++i) {
    if (wanting_[i] == i) continue;
    std::memcpy(workspace_.x + i * config_.hidden,
                workspace_.x + std::size_t{wanting_[i]} * config_.hidden,
                config_.hidden * sizeof(float));
  }
}

void Executor::rotate_and_store(const Step& step, const Region& region, std::size_t worker) {
  const LayerWeights& w = *step.weights;
  const std::size_t half = config_.rope_dim / 2;
  const std::size_t heads = config_.num_heads;
  const std::size_t kv_heads = config_.num_kv_heads;
  const std::size_t units = heads + 2 * kv_heads;
  const KvFormat& kv = model_->kv_format();
  // Weights are powers of two (kernels/attention).
  const float query_scale = config_.query_scale * std::numbers::log2e_v<float>;
  const bool has_key_bias = caches_keys_without_bias(config_, kv, step.layer);
  const RopeSet& angles = workspace_.rope_sets[workspace_.layer_rope_set[step.layer]];
  const Range range = partition(region.rows.size() * units, worker, pool_->size());
  for (std::size_t i = range.begin; i < range.end; ++i) {
    const std::size_t row = i / units;
    const std::size_t unit = i % units;
    const float* cosines = angles.cosines + row * half;
    const float* sines = angles.sines + row * half;
    if (unit < heads) {
      float* q = workspace_.q + (row * heads + unit) * config_.head_dim;
      if (!w.q_norm.empty()) {
        row_kernels_.rms_norm(q, w.q_norm.data(), config_.norm_epsilon, config_.head_dim, q);
      }
      row_kernels_.rope(cosines, sines, half, q);
      row_kernels_.scale(query_scale, config_.head_dim, q);
      if (has_key_bias) {
        const std::size_t kv_head = unit / config_.group_size();
        row_kernels_.key_bias(q, w.k_bias.data() + kv_head * config_.head_dim, half,
                              config_.head_dim, key_bias_query(row, unit));
      }
      if (kv.rotates_keys(step.layer)) {
        row_kernels_.hadamard(config_.head_dim, q);
        attention_.pack_query(kv.layers[step.layer].keys, q, config_.head_dim,
                              packed_query(row, unit));
      }
      continue;
    }
    const auto position = static_cast<std::size_t>(region.rows[row].position);
    const kv::Sequence& sequence = *spans_[row_span_[row]].sequence;
    const std::size_t kv_head = (unit - heads) % kv_heads;
    const kernels::CachedHead cache = sequence.layout().head(step.layer, kv_head);
    const std::size_t slot = position % kernels::kSlabTokens;
    std::byte* slab = sequence.slab(cache, position / kernels::kSlabTokens);
    if (unit < heads + kv_heads) {
      float* k = workspace_.k + (row * kv_heads + kv_head) * config_.head_dim;
      if (!w.k_norm.empty()) {
        row_kernels_.rms_norm(k, w.k_norm.data(), config_.norm_epsilon, config_.head_dim, k);
      }
      row_kernels_.rope(cosines, sines, half, k);
      if (kv.rotates_keys(step.layer)) row_kernels_.hadamard(config_.head_dim, k);
      attention_.store_key(cache.key_type, k, config_.head_dim, slot, slab);
    } else {
      float* v = workspace_.v + (row * kv_heads + kv_head) * config_.value_dim;
      if (kv.rotates_values(step.layer)) row_kernels_.hadamard(config_.value_dim, v);
      attention_.store_value(cache.value_type, v, config_.value_dim, slot,
                             slab + cache.key_bytes());
    }
  }
}

void Executor::add_normed(const Step& step, const Region& region, std::size_t worker) {
  const Range range = partition(rows_of(step, region), worker, pool_->size());
  float* normed = workspace_.workers[worker].row;
  for (std::size_t r = range.begin; r < range.end; ++r) {
    row_kernels_.rms_norm(workspace_.y + r * config_.hidden, step.gain.data(), config_.norm_epsilon,
                          config_.hidden, normed);
    row_kernels_.add(normed, config_.hidden, workspace_.x + r * config_.hidden);
  }
}

}  // namespace cicada::model
