#include "cicada/model/model.h"

#include <fmt/ranges.h>

#include <numbers>

#include "cicada/base/check.h"
#include "cicada/kernels/attention/attention.h"

namespace cicada::model {
namespace {

// Version of docs/numerics.md; raised when any bit may change.
constexpr int kNumericsVersion = 3;

// Copies of the first entry before, and readable elements after, a reversed bias (attention.h).
constexpr std::size_t kBiasPadding = 16;

constexpr std::size_t bias_stride(std::uint32_t max_distance) {
  return kBiasPadding + max_distance + 1 + kBiasPadding;
}

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) {
    hash = (hash ^ static_cast<std::uint8_t>(c)) * 0x100000001b3ULL;
  }
  return hash;
}

}  // namespace

Result<std::unique_ptr<Model>> Model::load(const formats::ModelFile& file,
                                           platform::ThreadPool& pool,
                                           const ModelOptions& options) {
  std::unique_ptr<Model> model(new Model());
  model->level_ = options.level;
  model->elide_ = options.load.elide;
  auto config = read_config(file);
  if (!config) return fail(std::move(config).error().with_context(file.path()));
  model->config_ = std::move(*config);
  auto weights = Weights::load(file, model->config_, pool, options.load);
  if (!weights) return fail(std::move(weights).error().with_context(file.path()));
  model->weights_ = std::move(*weights);
  if (options.keep_panels && platform::has_tiles(options.level)) {
    CICADA_TRY(model->weights_.keep_panels(kernels::matmul_kernels(options.level), pool));
  }
  model->remake_plan();
  model->make_bias_tables();
  return model;
}

void Model::use_kv(KvFormat format) {
  CICADA_CHECK(format.layers.empty() || format.layers.size() == config_.num_layers,
               "a KV format has the model's layers");
  kv_format_ = std::move(format);
  remake_plan();
}

void Model::use_policy(const KvPolicy& policy) {
  kv_policy_ = policy;
  remake_plan();
}

bool Model::caches_any_key_without_bias() const {
  for (std::uint32_t layer = 0; layer < config_.num_layers; ++layer) {
    if (caches_keys_without_bias(config_, kv_format_, layer)) return true;
  }
  return false;
}

void Model::remake_plan() {
  plan_ = make_plan(config_, weights_, kv_format_,
                    {.elide = elide_,
                     .has_tiles = platform::has_tiles(level_),
                     .chooses_pages = kv_policy_.pages > 0});
}

kv::KvLayout Model::kv_layout(std::size_t page_tokens) const {
  kv::KvShape shape{.num_kv_heads = config_.num_kv_heads,
                    .head_dim = config_.head_dim,
                    .value_dim = config_.value_dim,
                    .layers = kv_format_.layers,
                    .has_bounds = kv_policy_.pages > 0};
  shape.layers.resize(config_.num_layers);
  return {std::move(shape), page_tokens};
}

void Model::make_bias_tables() {
  if (config_.rel_pos_dim == 0) return;
  const std::uint32_t limit = config_.rel_pos_max_distance;
  bias_tables_.resize(config_.num_layers);
  for (std::uint32_t layer = 0; layer < config_.num_layers; ++layer) {
    const LayerWeights& w = weights_.layers()[layer];
    if (elide_ && (w.is_rel_pos_zero || w.is_attention_zero)) continue;
    std::vector<float>& table = bias_tables_[layer];
    table.assign(config_.num_heads * bias_stride(limit), 0.0F);
    for (std::uint32_t head = 0; head < config_.num_heads; ++head) {
      const float* row = w.rel_pos.data() + std::size_t{head} * config_.rel_pos_dim;
      float* reversed = table.data() + head * bias_stride(limit) + kBiasPadding;
      for (std::uint32_t d = 0; d <= limit; ++d) {
        reversed[limit - d] =
            row[rel_pos_bucket(d, config_.rel_pos_dim, limit)] * std::numbers::log2e_v<float>;
      }
      std::fill(reversed - kBiasPadding, reversed, reversed[0]);
    }
  }
}

const float* Model::reversed_bias(std::uint32_t layer, std::uint32_t head) const {
  if (layer >= bias_tables_.size() || bias_tables_[layer].empty()) return nullptr;
  return bias_tables_[layer].data() + head * bias_stride(config_.rel_pos_max_distance) +
         kBiasPadding;
}

std::string Model::numerics_id() const {
  std::string text = fmt::format("numerics {}; level {}; kv {}; key tile {}; split {}; elided {}",
                                 kNumericsVersion, platform::name(platform::numerics_of(level_)),
                                 kv_format_name(kv_format_), kernels::kKeyTile, kernels::kSplitKeys,
                                 fmt::join(plan_.elided, ","));
  if (kv_policy_ != KvPolicy{}) text += fmt::format("; {}", kv_policy_name(kv_policy_));
  for (const Step& step : plan_.steps) {
    for (const Product& product : step.products) {
      text += fmt::format(";{}={}/{}", product.tensor, tensor::name(product.w.dtype),
                          kernels::input_format_name(product.input));
      if (product.prefill_input != product.input) {
        text += fmt::format("/{}", kernels::input_format_name(product.prefill_input));
      }
    }
  }
  return fmt::format("{:016x}", fnv1a(text));
}

}  // namespace cicada::model
