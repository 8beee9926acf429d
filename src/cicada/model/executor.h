// Runs a model's plan over batches of tokens.
//
// A batch is rows of (token, position, sequence). All workers run the steps together in one
// parallel region; nothing is allocated after create(). Bits: logits of a row depend on the tokens
// of its sequence up to it and on Model::numerics_id(), never on the other rows, the batch's cuts
// or the number of threads (docs/numerics.md). Threads: one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cicada/base/ids.h"
#include "cicada/base/result.h"
#include "cicada/kernels/attention/attention.h"
#include "cicada/kernels/rows/rows.h"
#include "cicada/kv/sequence.h"
#include "cicada/model/model.h"
#include "cicada/model/workspace.h"
#include "cicada/platform/work_sharing.h"

namespace cicada::model {

using Peak = kernels::Peak;

// What a row is for: the bits of a position may depend on it (docs/numerics.md).
enum class Role : std::uint8_t {
  kPrefill,  // what was sent
  kDecode,   // what is generated, and drafts of it
};

struct Row {
  TokenId token;
  std::int64_t position = 0;
  std::uint32_t sequence = 0;  // index into the sequences of the call
  bool wants_logits = false;
  Role role = Role::kPrefill;  // the same for all rows of a sequence
};

class Executor {
 public:
  // Errors: kOutOfMemory.
  static Result<std::unique_ptr<Executor>> create(const Model& model, platform::ThreadPool& pool,
                                                  const WorkspaceLimits& limits);

  const Model& model() const { return *model_; }
  const WorkspaceLimits& limits() const { return workspace_.limits(); }
  std::size_t workspace_bytes() const { return workspace_.size_bytes(); }

  // Runs a batch. Rows of a sequence are consecutive with ascending positions, everything before
  // them is in the sequence's cache, and each sequence has room for its rows (reserve()). Rows of
  // the prefill role come before those of the decode role.
  // `logits` [wanting rows, vocab] in row order, or empty: then head() gives them piece by piece
  // until the next run().
  // Errors: kInvalidArgument for a token outside the vocabulary or a batch above the limits.
  Result<void> run(std::span<const Row> rows, std::span<kv::Sequence* const> sequences,
                   std::span<float> logits);

  // Logits of wanting rows [first, first + count) of the last batch. Shapes: logits [count, vocab].
  void head(std::size_t first, std::size_t count, std::span<float> logits);

  // The greatest logit of row `idx` of the logits that run() or head() wrote last, found while they
  // were made.
  const kernels::Peak& peak(std::size_t idx) const { return peaks_[idx]; }

 private:
  // Rows of one sequence in the batch.
  struct Span {
    const kv::Sequence* sequence = nullptr;
    std::size_t first_row = 0;
    std::size_t num_rows = 0;
    std::int64_t first_position = 0;
    // Of a decoding row: key ranges at the beginning that lie in the same pages as those of the
    // span before it. They are read once for both.
    std::size_t shared_splits = 0;
  };

  // The key ranges that the queries of some positions see, ascending: those of the sinks, and those
  // of the window.
  struct SeenSplits {
    std::size_t num_sinks = 0;
    std::size_t first = 0;  // of the window
    std::size_t count = 0;  // of both

    std::size_t at(std::size_t index) const {
      return index < num_sinks ? index : first + index - num_sinks;
    }
  };
  // How a span with one row is cut: KV heads by splits by parts of a group.
  struct SplitUnits {
    SeenSplits splits;
    std::size_t parts = 1;
    std::size_t count = 0;
  };
  struct SplitUnit {
    const Span* span = nullptr;
    std::size_t num_spans = 1;  // it and those after it that share the range
    std::uint32_t kv_head = 0;
    std::size_t split = 0;
    std::size_t part = 0;
    std::size_t parts = 1;
  };

  // Rows that a step treats alike: all, or those of one role.
  struct Section {
    std::size_t first = 0;
    std::size_t count = 0;
    bool is_prefill = false;
  };
  struct Sections {
    std::array<Section, 2> list;
    std::size_t count = 1;
    const Section* begin() const { return list.data(); }
    const Section* end() const { return list.data() + count; }
  };

  // What the steps of a region work on.
  struct Region {
    std::span<const Row> rows;
    std::size_t head_begin = 0;  // which of the wanted rows get their logits
    std::size_t head_count = 0;
    float* logits = nullptr;
    std::size_t step_begin = 0;
    std::size_t step_end = 0;
  };

  Executor(const Model& model, platform::ThreadPool& pool, Workspace workspace);

  Result<void> check_batch(std::span<const Row> rows, std::size_t num_sequences) const;
  void find_spans(std::span<const Row> rows, std::span<kv::Sequence* const> sequences);
  void find_shared_splits();
  void run_region(const Region& region);
  void run_step(const Step& step, const Region& region, std::size_t worker);

  void embed(const Region& region, std::size_t worker);
  void prepare(const Step& step, const Region& region, std::size_t worker);
  // Row `row` of the step's as row `index` of a section.
  void prepare_row(const Step& step, std::size_t row, const Section& section, std::size_t index,
                   std::size_t worker, PreparedInput input);
  float* output(const Product& product, const Region& region) const;
  void product(const Step& step, const Region& region, std::size_t worker);
  void glu(const Step& step, const Region& region, std::size_t worker);
  // Takes columns of a product that are logits into the worker's peaks.
  void note_peaks(const Region& region, const platform::Range& groups, std::size_t worker);
  void fold_peaks(const Region& region);
  void keep_wanted(std::size_t worker);
  void rotate_and_store(const Step& step, const Region& region, std::size_t worker);
  void choose_pages(const Step& step, std::size_t worker);
  void bound_new_tiles(const Step& step, const Span& span, std::uint32_t kv_head) const;
  void choose_tiles(const Step& step, const Span& span, std::size_t row, std::uint32_t kv_head,
                    std::size_t worker);
  // Which tiles of a split a row reads with the heads of a group, by bit.
  std::uint8_t chosen_tiles(const Step& step, std::size_t row, std::uint32_t kv_head,
                            std::size_t split) const;
  void attend(const Step& step, std::size_t worker);
  static std::size_t blocks_of(const Span& span);
  void attend_block(const Step& step, const Span& span, std::uint32_t kv_head,
                    std::size_t first_row, const platform::Range& queries, std::size_t worker);
  void attend_blocks(const Step& step, std::size_t worker);
  void attend_splits(const Step& step, std::size_t worker);
  SeenSplits seen_splits(const Step& step, std::int64_t first, std::int64_t last) const;
  SplitUnits split_units(const Step& step, const Span& span) const;
  // Whether spans read what they share once: where rows see all keys before them.
  bool reads_shared_once(const Step& step) const;
  // Unit `index` of all spans', whose cuts are `units` [spans].
  SplitUnit split_unit(const Step& step, std::span<const SplitUnits> units,
                       std::size_t index) const;
  // Tiles of a unit that any of its rows reads, by bit.
  std::uint8_t tiles_of(const Step& step, const SplitUnit& unit) const;
  kernels::AttentionCall split_call(const Step& step, const SplitUnit& unit, std::size_t worker);
  void fold_splits(const Step& step, std::size_t row, std::size_t worker);
  void add_normed(const Step& step, const Region& region, std::size_t worker);

  kernels::AttentionRow query(const Step& step, std::size_t row, std::uint32_t head) const;
  float* key_bias_query(std::size_t row, std::size_t head) const {
    return workspace_.key_bias + (row * config_.num_heads + head) * workspace_.key_bias_width();
  }
  float* packed_query(std::size_t row, std::size_t head) const {
    return workspace_.packed_q +
           (row * config_.num_heads + head) * kernels::packed_query_floats(config_.head_dim);
  }
  kernels::KeyBias key_bias(const Step& step) const;
  // Turns a head's output back, where values are cached rotated.
  void turn_back(const Step& step, float* out) const;
  kernels::CachedHead cached(const Step& step, const Span& span, std::uint32_t kv_head) const;
  kernels::Activations activations(const Product& product, const Section& section, bool is_own,
                                   std::size_t worker) const;
  std::size_t rows_of(const Step& step, const Region& region) const;
  Sections sections_of(const Step& step, const Region& region) const;
  // Whether any row of the span from `begin` on, `count` of them, wants logits.
  bool any_wanted(const Span& span, std::size_t begin, std::size_t count) const;
  // Few rows are prepared by every worker for itself, which saves a barrier.
  static bool is_private(std::size_t rows) { return rows <= Workspace::kPrivateRows; }

  const Model* model_;
  const Config& config_;
  platform::ThreadPool* pool_;
  const kernels::MatmulKernels& matmul_;
  const kernels::RowKernels& row_kernels_;
  const kernels::AttentionKernels& attention_;
  Workspace workspace_;
  platform::WorkSharing work_;

  std::vector<std::vector<SplitUnits>> split_units_;  // by worker: of the step it is at
  std::vector<Row> rows_;                             // of the last batch
  std::vector<Span> spans_;                           // of the last batch
  std::vector<std::uint32_t> row_span_;               // row -> span
  std::vector<std::uint32_t> wanting_;                // rows that want logits, ascending
  std::vector<kernels::Peak> peaks_;                  // of the logits written last
  std::size_t num_prefill_rows_ = 0;                  // of the last batch: they come first
};

}  // namespace cicada::model
