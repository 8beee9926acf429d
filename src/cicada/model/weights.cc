#include "cicada/model/weights.h"

#include <algorithm>
#include <array>
#include <map>

#include "cicada/kernels/matmul/layout.h"
#include "cicada/kernels/matmul/pack.h"
#include "cicada/model/tensors.h"
#include "cicada/platform/resources.h"
#include "cicada/tensor/dequantize.h"

namespace cicada::model {
namespace {

using formats::ModelFile;
using formats::TensorInfo;
using kernels::PackedWeights;

// Sums of a loader's allocations stay aligned to cache lines.
constexpr std::size_t kAlignment = 64;
constexpr std::size_t align(std::size_t n) {
  return (n + kAlignment - 1) / kAlignment * kAlignment;
}

// Bytes of a tensor's file image packed at once.
constexpr std::size_t kSliceBytes = std::size_t{8} << 20;

}  // namespace

bool is_exactly_zero(const ModelFile& file, const TensorInfo& tensor) {
  const std::span<const std::byte> bytes = file.tensor_bytes(tensor);
  const tensor::DTypeInfo& type = tensor::info(tensor.dtype);
  // Decoded a piece at a time: most tensors show a number other than 0 in the first.
  constexpr std::size_t kPiece = 256;
  std::array<float, kPiece> values{};
  const std::uint64_t total = tensor.num_elements();
  for (std::uint64_t at = 0; at < total; at += kPiece) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, total - at));
    const std::size_t offset =
        static_cast<std::size_t>(at) / type.block_elements * type.block_bytes;
    tensor::dequantize_row(tensor.dtype,
                           bytes.subspan(offset, tensor::row_bytes(tensor.dtype, count)),
                           std::span(values).first(count));
    for (std::size_t i = 0; i < count; ++i) {
      if (values[i] != 0.0F) return false;  // NaN is not zero either
    }
  }
  return true;
}

std::vector<std::uint32_t> half_split_order(std::size_t rows, std::size_t head_dim,
                                            std::size_t rope_dim) {
  std::vector<std::uint32_t> order(rows);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t head = row / head_dim * head_dim;
    const std::size_t i = row % head_dim;
    const std::size_t half = rope_dim / 2;
    std::size_t source = i;
    if (i < half) {
      source = 2 * i;
    } else if (i < rope_dim) {
      source = 2 * (i - half) + 1;
    }
    order[row] = static_cast<std::uint32_t>(head + source);
  }
  return order;
}

// Two passes over the same calls: the first measures, the second packs.
class WeightLoader {
 public:
  WeightLoader(const ModelFile& file, const Config& config, platform::ThreadPool& pool,
               const LoadOptions& options)
      : file_(file), config_(config), pool_(pool), options_(options) {
    if (config.rope_layout == formats::RopeLayout::kInterleaved) {
      q_order_ = half_split_order(std::size_t{config.num_heads} * config.head_dim, config.head_dim,
                                  config.rope_dim);
      k_order_ = half_split_order(std::size_t{config.num_kv_heads} * config.head_dim,
                                  config.head_dim, config.rope_dim);
    }
  }

  Result<Weights> load() {
    CICADA_TRY(check_tensors(config_, audit_tensors(config_, file_)));
    Weights weights;
    visit(weights);
    auto matrices = tensor::Buffer::create(matrix_bytes_);
    if (!matrices) return fail(std::move(matrices).error().with_context("weights"));
    auto vectors = tensor::Buffer::create(vector_bytes_);
    if (!vectors) return fail(std::move(vectors).error().with_context("weights"));
    weights.matrices_ = std::move(*matrices);
    weights.vectors_ = std::move(*vectors);
    total_bytes_ = matrix_bytes_;
    matrix_bytes_ = 0;
    vector_bytes_ = 0;
    matrices_ = weights.matrices_.data();
    vectors_ = weights.vectors_.data();
    visit(weights);
    if (is_cancelled_) return fail(Code::kCancelled, "loading was stopped");
    return weights;
  }

 private:
  bool is_packing() const { return matrices_ != nullptr; }

  void visit(Weights& weights) {
    weights.layers_.assign(config_.num_layers, LayerWeights());
    weights.embedding_ = matrix("token_embd.weight", {});
    for (std::uint32_t i = 0; i < config_.num_layers && !is_cancelled_; ++i) {
      visit_layer(i, weights.layers_[i]);
    }
    weights.output_norm_ = vector("output_norm.weight");
    weights.head_ = config_.is_tied ? weights.embedding_ : matrix("output.weight", {});
    weights.rope_factors_ = vector("rope_freqs.weight");
  }

  void visit_layer(std::uint32_t i, LayerWeights& w) {
    const auto name = [i](std::string_view tensor) { return layer_tensor(i, tensor); };
    w.attn_norm = vector(name("attn_norm.weight"));
    w.is_attention_zero = is_zero(name("attn_output.weight"));
    const bool has_attention = !(w.is_attention_zero && options_.elide);
    if (has_attention) {
      w.q = matrix(name("attn_q.weight"), q_order_);
      w.k = matrix(name("attn_k.weight"), k_order_);
      w.v = matrix(name("attn_v.weight"), {});
      w.o = matrix(name("attn_output.weight"), {});
    }
    w.q_bias = vector(name("attn_q.bias"));
    w.k_bias = vector(name("attn_k.bias"));
    w.v_bias = vector(name("attn_v.bias"));
    w.q_norm = vector(name("attn_q_norm.weight"));
    w.k_norm = vector(name("attn_k_norm.weight"));
    if (config_.rel_pos_dim > 0) {
      w.is_rel_pos_zero = is_zero(name("rel_pos_proj.weight"));
      w.rel_pos = vector(name("rel_pos_proj.weight"));
    }
    w.post_attention_norm = vector(name("post_attention_norm.weight"));
    w.ffn_norm = vector(name("ffn_norm.weight"));
    w.is_ffn_zero = is_zero(name("ffn_down.weight"));
    if (!(w.is_ffn_zero && options_.elide)) {
      w.gate = matrix(name("ffn_gate.weight"), {});
      w.up = matrix(name("ffn_up.weight"), {});
      w.down = matrix(name("ffn_down.weight"), {});
    }
    w.post_ffn_norm = vector(name("post_ffw_norm.weight"));
  }

  bool is_zero(const std::string& name) {
    const auto [entry, is_new] = zeros_.try_emplace(name, false);
    if (is_new) entry->second = is_exactly_zero(file_, *file_.find(name));
    return entry->second;
  }

  PackedWeights matrix(const std::string& name, const std::vector<std::uint32_t>& row_order) {
    const TensorInfo& tensor = *file_.find(name);
    PackedWeights packed{.dtype = tensor.dtype,
                         .data = nullptr,
                         .rows = static_cast<std::size_t>(tensor.num_rows()),
                         .columns = static_cast<std::size_t>(tensor.row_elements())};
    const std::size_t bytes = kernels::packed_bytes(packed.dtype, packed.rows, packed.columns);
    if (is_packing() && !is_cancelled_) {
      packed.data = matrices_ + matrix_bytes_;
      pack(tensor, packed, {matrices_ + matrix_bytes_, bytes}, row_order);
    }
    matrix_bytes_ += align(bytes);
    return packed;
  }

  void pack(const TensorInfo& tensor, const PackedWeights& packed, std::span<std::byte> target,
            const std::vector<std::uint32_t>& row_order) {
    const std::span<const std::byte> source = file_.tensor_bytes(tensor);
    const std::size_t groups = kernels::num_groups(packed.rows);
    const std::size_t group_bytes =
        kernels::kGroupRows * tensor::row_bytes(packed.dtype, packed.columns);
    // In slices, so that little of the file is resident beside what was made of it.
    const std::size_t slice = std::max<std::size_t>(pool_.size(), kSliceBytes / group_bytes);
    file_.will_need(tensor);
    for (std::size_t begin = 0; begin < groups; begin += slice) {
      const std::size_t count = std::min(slice, groups - begin);
      pool_.run([&](std::size_t worker) {
        const platform::Range range = platform::partition(count, worker, pool_.size());
        kernels::pack_groups(packed.dtype, source, packed.rows, packed.columns, target, row_order,
                             begin + range.begin, begin + range.end);
      });
      file_.drop_pages(tensor, begin * group_bytes, count * group_bytes);
    }
    // What lies between the slices' whole pages.
    file_.drop_pages(tensor);
    if (options_.progress && !options_.progress(matrix_bytes_ + target.size(), total_bytes_)) {
      is_cancelled_ = true;
    }
  }

  // Empty when the file has no such tensor.
  std::span<const float> vector(const std::string& name) {
    const TensorInfo* tensor = file_.find(name);
    if (tensor == nullptr) return {};
    const auto count = static_cast<std::size_t>(tensor->num_elements());
    const std::size_t at = vector_bytes_;
    vector_bytes_ += align(count * sizeof(float));
    if (!is_packing()) return {};
    const std::span<float> values(reinterpret_cast<float*>(vectors_ + at), count);
    tensor::dequantize_row(tensor->dtype, file_.tensor_bytes(*tensor), values);
    return values;
  }

  const ModelFile& file_;
  const Config& config_;
  platform::ThreadPool& pool_;
  const LoadOptions& options_;
  std::map<std::string, bool> zeros_;  // answers of the first pass
  std::vector<std::uint32_t> q_order_;
  std::vector<std::uint32_t> k_order_;
  std::size_t matrix_bytes_ = 0;
  std::size_t vector_bytes_ = 0;
  std::size_t total_bytes_ = 0;
  std::byte* matrices_ = nullptr;
  std::byte* vectors_ = nullptr;
  bool is_cancelled_ = false;
};

Result<void> Weights::keep_panels(const kernels::MatmulKernels& kernels,
                                  platform::ThreadPool& pool) {
  std::vector<PackedWeights*> matrices;
  std::size_t elements = 0;
  const auto panels_of = [](const PackedWeights& w) {
    return kernels::num_groups(w.rows) * kernels::panel_elements(w.columns);
  };
  for (LayerWeights& layer : layers_) {
    for (PackedWeights* w :
         {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up, &layer.down}) {
      if (w->data == nullptr || !kernels::has_tile_products(w->dtype)) continue;
      matrices.push_back(w);
      elements += panels_of(*w);
    }
  }
  const std::size_t bytes = elements * sizeof(std::uint16_t);
  const std::uint64_t available = platform::available_memory_bytes();
  if (bytes > available) {
    return fail(Code::kOutOfMemory,
                "panels that are kept take {} bytes, {} are free; without them the model runs",
                bytes, available);
  }
  auto buffer = tensor::Buffer::create(bytes);
  if (!buffer) return fail(std::move(buffer).error().with_context("panels"));
  panels_ = std::move(*buffer);
  std::uint16_t* at = panels_.as<std::uint16_t>().data();
  for (PackedWeights* w : matrices) {
    pool.run([&](std::size_t worker) {
      const platform::Range range =
          platform::partition(kernels::num_groups(w->rows), worker, pool.size());
      kernels.fill_panels(*w, range.begin, range.end, at);
    });
    w->panels = at;
    at += panels_of(*w);
  }
  return {};
}

Result<Weights> Weights::load(const ModelFile& file, const Config& config,
                              platform::ThreadPool& pool, const LoadOptions& options) {
  return WeightLoader(file, config, pool, options).load();
}

}  // namespace cicada::model
