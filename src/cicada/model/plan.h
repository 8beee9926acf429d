// The plan: the model as a flat list of fused steps, made once after loading. Parts that are
// exactly zero are not in it. The executor runs the steps in order, every worker its own share of
// each, and meets at a barrier where a step says so; `inspect --plan` prints it.
//
// Buffers between steps (rows are the tokens of the batch; from kKeepWanted on, x, input, y and h
// have those whose logits are asked for):
// - x [rows, hidden]: the residual stream
// - input [rows, k]: prepared input of the next products, in the forms they read
// - q, k, v [rows, heads * dim]: projections
// - attn [rows, heads * value_dim]: attention output
// - y [rows, hidden]: what a part adds, where a norm comes before the addition
// - h [rows, ffn]: gated feed-forward
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cicada/kernels/matmul/matmul.h"
#include "cicada/model/config.h"
#include "cicada/model/kv_format.h"
#include "cicada/model/weights.h"

namespace cicada::model {

enum class StepKind : std::uint8_t {
  kEmbed,             // x = embedding[token] * scale
  kPrepareNorm,       // input = norm(x)
  kProduct,           // products of one input
  kRotateAndStore,    // norms and RoPE on q and k, then k and v into the cache
  kChoosePages,       // pages of the cache that rows of the decode role will read
  kAttend,            // attn = attention(q, cache)
  kPrepareAttention,  // input = attn
  kAddNormed,         // x += norm(y)
  kGlu,               // h = act(input · gate) * (input · up)
  kPrepareGlu,        // input = h
  kKeepWanted,        // x = rows of x whose logits are asked for
  kPrepareHead,       // input = norm(x), of the rows whose logits are asked for now
  kHead,              // logits = input · head
};
std::string_view step_kind_name(StepKind kind);

// Where a product writes.
enum class BufferId : std::uint8_t { kNone, kX, kQ, kK, kV, kY, kH, kLogits };

// What a prepare step makes of its rows: every form that a product of the next step reads.
struct PreparedForms {
  bool int8 = false;
  bool int15 = false;
  bool f32 = false;
  bool bf16 = false;

  void add(kernels::InputFormat format);
};

struct Product {
  std::string tensor;
  kernels::PackedWeights w;
  const float* bias = nullptr;
  kernels::InputFormat input = kernels::InputFormat::kF32;
  BufferId out = BufferId::kNone;
  kernels::Epilogue epilogue = kernels::Epilogue::kStore;
  kernels::InputFormat prefill_input = kernels::InputFormat::kF32;  // of rows of the prefill role
};

struct Step {
  StepKind kind = StepKind::kEmbed;
  std::string name;         // "blk.3.attn_qkv"
  std::uint32_t layer = 0;  // of layer steps
  const LayerWeights* weights = nullptr;
  std::span<const float> gain = {};  // of norm steps
  std::vector<Product> products = {};
  PreparedForms forms = {};  // of prepare steps
  PreparedForms prefill_forms = {};
  // Whether rows of the prefill role are prepared and multiplied apart from the others, in another
  // form: they come first in a batch.
  bool splits_roles = false;
  // After kKeepWanted: the step is for the wanted rows only. The last layer's keys and values are
  // all that its other rows are computed for.
  bool wanted_rows = false;
  // Whether all workers must meet before the next step. Prepare steps are done by every worker for
  // itself when there are few rows, and then need no barrier.
  bool barrier_after = false;

  std::uint64_t weight_bytes() const;
};

struct Plan {
  std::vector<Step> steps;
  std::vector<std::string>
      elided;  // "blk.7", "blk.7.attn", "blk.7.ffn", "blk.7.rel_pos_proj", "rel_pos_proj"
  std::vector<std::string> notices;  // sentences for the log
};

struct PlanOptions {
  bool elide = true;           // leave parts out that are exactly zero
  bool has_tiles = false;      // products of the prefill role take BF16 where the weights allow it
  bool chooses_pages = false;  // rows of the decode role read some pages of the cache only
};

Plan make_plan(const Config& config, const Weights& weights, const KvFormat& kv,
               const PlanOptions& options);

}  // namespace cicada::model
