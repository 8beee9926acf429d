#include "cicada/model/tensors.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "cicada/formats/quote.h"

namespace cicada::model {
namespace {

void add_layer_tensors(const Config& c, std::uint32_t layer, std::vector<ExpectedTensor>& list) {
  const auto add = [&](std::string_view name, std::vector<std::uint64_t> shape, Part part) {
    list.push_back({layer_tensor(layer, name), std::move(shape), part,
                    static_cast<std::int32_t>(layer), false});
  };
  const std::uint64_t q_rows = std::uint64_t{c.num_heads} * c.head_dim;
  const std::uint64_t k_rows = std::uint64_t{c.num_kv_heads} * c.head_dim;
  const std::uint64_t v_rows = std::uint64_t{c.num_kv_heads} * c.value_dim;
  add("attn_norm.weight", {c.hidden}, Part::kNorms);
  add("attn_q.weight", {q_rows, c.hidden}, Part::kAttention);
  add("attn_k.weight", {k_rows, c.hidden}, Part::kAttention);
  add("attn_v.weight", {v_rows, c.hidden}, Part::kAttention);
  if (c.has_qkv_bias) {
    add("attn_q.bias", {q_rows}, Part::kAttention);
    add("attn_k.bias", {k_rows}, Part::kAttention);
    add("attn_v.bias", {v_rows}, Part::kAttention);
  }
  if (c.has_qk_norm) {
    add("attn_q_norm.weight", {c.head_dim}, Part::kNorms);
    add("attn_k_norm.weight", {c.head_dim}, Part::kNorms);
  }
  add("attn_output.weight", {c.hidden, std::uint64_t{c.num_heads} * c.value_dim}, Part::kAttention);
  if (c.rel_pos_dim > 0) {
    add("rel_pos_proj.weight", {c.num_heads, c.rel_pos_dim}, Part::kPosition);
  }
  if (c.has_post_norms) add("post_attention_norm.weight", {c.hidden}, Part::kNorms);
  add("ffn_norm.weight", {c.hidden}, Part::kNorms);
  add("ffn_gate.weight", {c.ffn, c.hidden}, Part::kFeedForward);
  add("ffn_up.weight", {c.ffn, c.hidden}, Part::kFeedForward);
  add("ffn_down.weight", {c.hidden, c.ffn}, Part::kFeedForward);
  if (c.has_post_norms) add("post_ffw_norm.weight", {c.hidden}, Part::kNorms);
}

// RoPE's inverse frequencies, which converters of old wrote for each layer: they are computed from
// the configuration, and no known engine reads them.
bool is_unused(std::string_view name) {
  return name.ends_with(".rotary_emb.inv_freq") || name.ends_with(".attn_rot_embd") ||
         name.ends_with(".attn_rot_embd.weight");
}

std::string listing(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 6;
  std::string text = fmt::format(
      "{}",
      fmt::join(names.begin(),
                names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kShown)), ", "));
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

}  // namespace

std::string_view part_name(Part part) {
  switch (part) {
    case Part::kEmbedding:
      return "embedding";
    case Part::kAttention:
      return "attention";
    case Part::kFeedForward:
      return "feed-forward";
    case Part::kNorms:
      return "norms";
    case Part::kPosition:
      return "position";
    case Part::kHead:
      return "head";
  }
  return "";
}

std::uint64_t ExpectedTensor::num_elements() const {
  std::uint64_t product = 1;
  for (const std::uint64_t dim : shape) product *= dim;
  return product;
}

std::string layer_tensor(std::uint32_t layer, std::string_view name) {
  return fmt::format("blk.{}.{}", layer, name);
}

std::vector<ExpectedTensor> expected_tensors(const Config& c) {
  std::vector<ExpectedTensor> list;
  list.push_back({"token_embd.weight", {c.vocab, c.hidden}, Part::kEmbedding, -1, false});
  for (std::uint32_t layer = 0; layer < c.num_layers; ++layer) add_layer_tensors(c, layer, list);
  list.push_back({"output_norm.weight", {c.hidden}, Part::kNorms, -1, false});
  if (!c.is_tied) list.push_back({"output.weight", {c.vocab, c.hidden}, Part::kHead, -1, false});
  list.push_back({"rope_freqs.weight", {c.rope_dim / 2}, Part::kPosition, -1, true});
  return list;
}

TensorAudit audit_tensors(const Config& config, const formats::ModelFile& file) {
  TensorAudit audit;
  std::set<std::string_view> known;
  const std::vector<ExpectedTensor> expected = expected_tensors(config);
  for (const ExpectedTensor& wanted : expected) {
    known.insert(wanted.name);
    const formats::TensorInfo* found = file.find(wanted.name);
    if (found == nullptr) {
      if (!wanted.is_optional) audit.missing.push_back(wanted.name);
      continue;
    }
    if (found->shape != wanted.shape) {
      audit.misshapen.push_back(fmt::format("tensor {}: is [{}], [{}] is needed", wanted.name,
                                            fmt::join(found->shape, ", "),
                                            fmt::join(wanted.shape, ", ")));
    }
  }
  for (const formats::TensorInfo& tensor : file.tensors()) {
    if (known.contains(tensor.name)) continue;
    (is_unused(tensor.name) ? audit.unused : audit.extra).push_back(tensor.name);
  }
  return audit;
}

Result<void> check_tensors(const Config& config, const TensorAudit& audit) {
  if (!audit.misshapen.empty()) return fail(Code::kCorrupt, "{}", audit.misshapen.front());
  if (audit.missing.size() == 1) {
    return fail(Code::kCorrupt, "tensor {}, which the configuration calls for, is missing",
                audit.missing.front());
  }
  if (!audit.missing.empty()) {
    return fail(Code::kCorrupt, "{} tensors that the configuration calls for are missing: {}",
                audit.missing.size(), listing(audit.missing));
  }
  if (audit.extra.empty()) return {};
  const std::size_t others = audit.extra.size() - 1;
  return fail(Code::kUnsupported,
              "tensor {} is not part of architecture {} as configured{}: without it the model "
              "would be another one",
              formats::quote(audit.extra.front()), config.architecture,
              others == 0   ? std::string()
              : others == 1 ? " (nor is 1 more)"
                            : fmt::format(" (nor are {} more)", others));
}

}  // namespace cicada::model
