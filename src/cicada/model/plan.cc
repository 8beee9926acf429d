#include "cicada/model/plan.h"

#include <algorithm>

#include "cicada/kernels/matmul/layout.h"

namespace cicada::model {
namespace {

using kernels::Epilogue;
using kernels::InputFormat;
using kernels::PackedWeights;

// Where a product stands: what its input's rounding costs differs.
enum class Site : std::uint8_t { kQkv, kAttentionOutput, kGlu, kDown, kHead };

// SmolLM2 (20 chunks of wiki.test.raw) is 0.59 % above its exact perplexity with 8 bits at every
// site, 0.08 % with 15 bits at these three, 0.003 % with 15 bits everywhere; the other two sites
// are most of the work and the least of the error (docs/numerics.md).
InputFormat input_format(Site site, tensor::DType weights) {
  if (kernels::is_float(weights)) return InputFormat::kF32;
  switch (site) {
    case Site::kQkv:
    case Site::kDown:
    case Site::kHead:
      return InputFormat::kInt15;
    case Site::kAttentionOutput:
    case Site::kGlu:
      break;
  }
  return InputFormat::kInt8;
}

class Planner {
 public:
  Planner(const Config& config, const Weights& weights, const KvFormat& kv,
          const PlanOptions& options)
      : config_(config),
        weights_(weights),
        kv_(kv),
        elide_(options.elide),
        has_tiles_(options.has_tiles),
        chooses_pages_(options.chooses_pages) {}

  Plan make() {
    add({.kind = StepKind::kEmbed, .name = "token_embd", .barrier_after = true});
    for (std::uint32_t i = 0; i < config_.num_layers; ++i) add_layer(i);
    keep_wanted();
    Step norm{.kind = StepKind::kPrepareHead, .name = "output_norm"};
    norm.gain = weights_.output_norm();
    add_prepared(
        std::move(norm),
        {.kind = StepKind::kHead,
         .name = "output",
         .products = {{config_.is_tied ? "token_embd.weight" : "output.weight", weights_.head(),
                       nullptr, input_format(Site::kHead, weights_.head().dtype), BufferId::kLogits,
                       Epilogue::kStore}},
         .barrier_after = true});
    name_elisions();
    return std::move(plan_);
  }

 private:
  void add(Step step) {
    step.wanted_rows = keeps_wanted_;
    plan_.steps.push_back(std::move(step));
  }

  // From here on nothing is needed of rows whose logits nobody asks for.
  void keep_wanted() {
    if (keeps_wanted_) return;
    add({.kind = StepKind::kKeepWanted, .name = "keep_wanted"});
    keeps_wanted_ = true;
  }

  // True when all layers after this one are elided.
  bool is_last(std::uint32_t layer) const {
    for (std::uint32_t i = layer + 1; i < config_.num_layers; ++i) {
      const LayerWeights& w = weights_.layers()[i];
      if (!elide_ || !w.is_attention_zero || !w.is_ffn_zero) return false;
    }
    return true;
  }

  // A prepare step and the step that reads what it prepared.
  void add_prepared(Step prepare, Step consumer) {
    // Rows that want logits are few, and the same kernels do for all of them.
    const bool use_tiles =
        has_tiles_ && !keeps_wanted_ &&
        std::all_of(consumer.products.begin(), consumer.products.end(),
                    [](const Product& p) { return kernels::has_tile_products(p.w.dtype); });
    prepare.splits_roles = consumer.splits_roles = use_tiles;
    for (Product& product : consumer.products) {
      product.prefill_input = use_tiles ? InputFormat::kBF16 : product.input;
      prepare.forms.add(product.input);
      prepare.prefill_forms.add(product.prefill_input);
    }
    add(std::move(prepare));
    add(std::move(consumer));
  }

  Step step(StepKind kind, std::uint32_t layer, std::string_view name) const {
    Step s{.kind = kind, .name = fmt::format("blk.{}.{}", layer, name), .layer = layer};
    s.weights = &weights_.layers()[layer];
    return s;
  }

  void add_layer(std::uint32_t i) {
    const LayerWeights& w = weights_.layers()[i];
    const bool has_attention = !(elide_ && w.is_attention_zero);
    const bool has_ffn = !(elide_ && w.is_ffn_zero);
    if (has_attention) add_attention(i, w);
    if (has_ffn) add_ffn(i, w);
    if (!has_attention && !has_ffn) {
      plan_.elided.push_back(fmt::format("blk.{}", i));
    } else if (!has_attention) {
      plan_.elided.push_back(fmt::format("blk.{}.attn", i));
    } else if (!has_ffn) {
      plan_.elided.push_back(fmt::format("blk.{}.ffn", i));
    }
    // A layer without attention has no use for a bias on its scores.
    if (config_.rel_pos_dim > 0 && w.is_rel_pos_zero && elide_) {
      zero_rel_pos_.push_back(fmt::format("blk.{}.rel_pos_proj", i));
    }
  }

  void add_attention(std::uint32_t i, const LayerWeights& w) {
    const auto tensor = [i](std::string_view name) { return fmt::format("blk.{}.{}", i, name); };
    Step norm = step(StepKind::kPrepareNorm, i, "attn_norm");
    norm.gain = w.attn_norm;
    Step qkv = step(StepKind::kProduct, i, "attn_qkv");
    // What the cache holds without its bias never gets it.
    const float* k_bias =
        caches_keys_without_bias(config_, kv_, i) ? nullptr : data_or_none(w.k_bias);
    qkv.products = {{tensor("attn_q.weight"), w.q, data_or_none(w.q_bias),
                     input_format(Site::kQkv, w.q.dtype), BufferId::kQ, Epilogue::kStore},
                    {tensor("attn_k.weight"), w.k, k_bias, input_format(Site::kQkv, w.k.dtype),
                     BufferId::kK, Epilogue::kStore},
                    {tensor("attn_v.weight"), w.v, data_or_none(w.v_bias),
                     input_format(Site::kQkv, w.v.dtype), BufferId::kV, Epilogue::kStore}};
    qkv.barrier_after = true;
    add_prepared(std::move(norm), std::move(qkv));
    Step rotate = step(StepKind::kRotateAndStore, i, "rope_store");
    rotate.barrier_after = true;
    add(std::move(rotate));
    if (chooses_pages_ && config_.layers[i].window == 0) {
      Step choose = step(StepKind::kChoosePages, i, "choose_pages");
      choose.barrier_after = true;
      add(std::move(choose));
    }
    if (is_last(i)) keep_wanted();
    Step attend =
        step(StepKind::kAttend, i, has_rel_pos(w) ? "attention+pos_bias_add" : "attention");
    attend.barrier_after = true;
    add(std::move(attend));
    add_output(i, step(StepKind::kPrepareAttention, i, "attn"),
               step(StepKind::kProduct, i, "attn_output"), Site::kAttentionOutput,
               tensor("attn_output.weight"), w.o, w.post_attention_norm, "post_attention_norm");
  }

  void add_ffn(std::uint32_t i, const LayerWeights& w) {
    const auto tensor = [i](std::string_view name) { return fmt::format("blk.{}.{}", i, name); };
    if (is_last(i)) keep_wanted();
    Step norm = step(StepKind::kPrepareNorm, i, "ffn_norm");
    norm.gain = w.ffn_norm;
    Step glu = step(StepKind::kGlu, i, "ffn_glu");
    glu.products = {{tensor("ffn_gate.weight"), w.gate, nullptr,
                     input_format(Site::kGlu, w.gate.dtype), BufferId::kH, Epilogue::kStore},
                    {tensor("ffn_up.weight"), w.up, nullptr, input_format(Site::kGlu, w.up.dtype),
                     BufferId::kH, Epilogue::kStore}};
    glu.barrier_after = true;
    add_prepared(std::move(norm), std::move(glu));
    add_output(i, step(StepKind::kPrepareGlu, i, "ffn"), step(StepKind::kProduct, i, "ffn_down"),
               Site::kDown, tensor("ffn_down.weight"), w.down, w.post_ffn_norm, "post_ffw_norm");
  }

  // The product that ends a part: added to x at once, or through a norm.
  void add_output(std::uint32_t i, Step prepare, Step product, Site site, std::string tensor,
                  const PackedWeights& w, std::span<const float> post_norm,
                  std::string_view norm_name) {
    const bool is_direct = post_norm.empty();
    product.products = {{std::move(tensor), w, nullptr, input_format(site, w.dtype),
                         is_direct ? BufferId::kX : BufferId::kY,
                         is_direct ? Epilogue::kAdd : Epilogue::kStore}};
    product.barrier_after = true;
    add_prepared(std::move(prepare), std::move(product));
    if (is_direct) return;
    Step normed = step(StepKind::kAddNormed, i, norm_name);
    normed.gain = post_norm;
    normed.barrier_after = true;
    add(std::move(normed));
  }

  bool has_rel_pos(const LayerWeights& w) const {
    return config_.rel_pos_dim > 0 && !(elide_ && w.is_rel_pos_zero);
  }

  static const float* data_or_none(std::span<const float> values) {
    return values.empty() ? nullptr : values.data();
  }

  void name_elisions() {
    if (config_.architecture == "cicada-v1" && config_.rel_pos_dim == 0) {
      plan_.notices.emplace_back(
          "Skipping position encoding layer initialization: not found in model config");
    }
    if (config_.architecture == "cicada-v1") {
      // RoPE has no parameters: it is never what is left out.
      plan_.notices.push_back(fmt::format(
          "[INFO] Initializing rotary embedding with max_position={}", config_.trained_context));
    }
    if (zero_rel_pos_.empty()) return;
    plan_.notices.emplace_back("[INFO] PosEncoder layer skipped: weights all zero");
    if (zero_rel_pos_.size() == config_.num_layers) zero_rel_pos_ = {"rel_pos_proj"};
    plan_.elided.insert(plan_.elided.end(), zero_rel_pos_.begin(), zero_rel_pos_.end());
  }

  const Config& config_;
  const Weights& weights_;
  const KvFormat& kv_;
  const bool elide_;
  const bool has_tiles_;
  const bool chooses_pages_;
  bool keeps_wanted_ = false;
  Plan plan_;
  std::vector<std::string> zero_rel_pos_;
};

}  // namespace

std::string_view step_kind_name(StepKind kind) {
  switch (kind) {
    case StepKind::kEmbed:
      return "embed";
    case StepKind::kPrepareNorm:
      return "prepare_norm";
    case StepKind::kProduct:
      return "product";
    case StepKind::kRotateAndStore:
      return "rotate_and_store";
    case StepKind::kChoosePages:
      return "choose_pages";
    case StepKind::kAttend:
      return "attend";
    case StepKind::kPrepareAttention:
      return "prepare_attention";
    case StepKind::kAddNormed:
      return "add_normed";
    case StepKind::kGlu:
      return "glu";
    case StepKind::kPrepareGlu:
      return "prepare_glu";
    case StepKind::kKeepWanted:
      return "keep_wanted";
    case StepKind::kPrepareHead:
      return "prepare_head";
    case StepKind::kHead:
      return "head";
  }
  return "";
}

void PreparedForms::add(kernels::InputFormat format) {
  int8 |= format == InputFormat::kInt8;
  int15 |= format == InputFormat::kInt15;
  f32 |= format == InputFormat::kF32;
  bf16 |= format == InputFormat::kBF16;
}

std::uint64_t Step::weight_bytes() const {
  std::uint64_t sum = 0;
  for (const Product& product : products) {
    sum += kernels::packed_bytes(product.w.dtype, product.w.rows, product.w.columns);
  }
  return sum;
}

Plan make_plan(const Config& config, const Weights& weights, const KvFormat& kv,
               const PlanOptions& options) {
  return Planner(config, weights, kv, options).make();
}

}  // namespace cicada::model
