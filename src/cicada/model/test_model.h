// For tests only: small random models of every architecture, written as GGUF and loaded.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cicada/formats/gguf_test_builder.h"
#include "cicada/kernels/test_support.h"
#include "cicada/model/executor.h"
#include "cicada/tensor/dequantize.h"
#include "cicada/tensor/quantize.h"

namespace cicada::model {

struct TestModel {
  std::string architecture = "llama";
  tensor::DType dtype = tensor::DType::kQ8_0;  // of matrices
  std::set<std::string> zero = {};             // tensors of zeros
  std::set<std::string> without = {};          // tensors left out
  std::set<std::string> more = {};             // further tensors, of `hidden` numbers
  std::optional<float> head = {};              // a head of this number alone; tied without
  std::uint32_t rel_pos_dim = 0;
  std::uint32_t num_layers = 3;
  std::uint32_t window = 0;   // gemma3
  std::uint32_t hidden = 64;  // K-quants need multiples of 256 here, in ffn
  std::uint32_t ffn = 96;     // and in 4 * head_dim
  std::uint32_t head_dim = 16;
  std::string kv = "f16";  // how keys and values are cached
};

inline constexpr std::uint32_t kTestVocab = 307;
inline constexpr std::uint32_t kTestHeads = 4;
inline constexpr std::uint32_t kTestKvHeads = 2;

// Rows of a type whose elements have a root mean square of about `size`.
inline std::vector<std::byte> test_rows(tensor::DType dtype, std::uint64_t rows,
                                        std::uint64_t columns, std::uint32_t seed, float size) {
  if (tensor::can_quantize(dtype)) {
    const std::vector<float> values = kernels::random_floats(rows * columns, seed, size);
    std::vector<std::byte> bytes(rows * tensor::row_bytes(dtype, columns));
    tensor::quantize_row(dtype, values, bytes);
    return bytes;
  }
  // Random blocks: their size follows from that of their scales.
  constexpr float kTrial = 0.05F;
  std::vector<float> values(columns);
  tensor::dequantize_row(dtype, kernels::random_rows(dtype, 1, columns, seed, kTrial), values);
  double squares = 0.0;
  for (const float v : values) squares += static_cast<double>(v) * static_cast<double>(v);
  const double trial_size = std::sqrt(squares / static_cast<double>(columns));
  return kernels::random_rows(dtype, rows, columns, seed,
                              kTrial * size / static_cast<float>(trial_size));
}

inline void add_test_matrix(formats::GgufBuilder& builder, const TestModel& model,
                            const std::string& name, std::uint64_t rows, std::uint64_t columns) {
  if (model.without.contains(name)) return;
  const auto seed = static_cast<std::uint32_t>(std::hash<std::string>()(name));
  std::vector<std::byte> bytes =
      test_rows(model.dtype, rows, columns, seed, 1.5F / std::sqrt(static_cast<float>(columns)));
  if (model.zero.contains(name)) std::fill(bytes.begin(), bytes.end(), std::byte{0});
  builder.tensor(name, {columns, rows}, tensor::info(model.dtype).gguf_type,
                 {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

inline void add_test_vector(formats::GgufBuilder& builder, const TestModel& model,
                            const std::string& name, std::uint64_t size, float around,
                            std::uint64_t rows = 0) {
  if (model.without.contains(name)) return;
  const auto seed = static_cast<std::uint32_t>(std::hash<std::string>()(name));
  std::vector<float> values =
      kernels::random_floats(size * std::max<std::uint64_t>(rows, 1), seed, 0.2F);
  for (float& value : values) value = model.zero.contains(name) ? 0.0F : value + around;
  const std::vector<std::uint64_t> dims =
      rows == 0 ? std::vector<std::uint64_t>{size} : std::vector<std::uint64_t>{size, rows};
  builder.tensor_f32(name, dims, values);
}

inline void add_test_layer(formats::GgufBuilder& b, const TestModel& m, std::uint32_t layer) {
  const std::string p = "blk." + std::to_string(layer) + ".";
  const bool is_gemma = m.architecture == "gemma3";
  const std::uint64_t q_rows = std::uint64_t{kTestHeads} * m.head_dim;
  const std::uint64_t kv_rows = std::uint64_t{kTestKvHeads} * m.head_dim;
  add_test_vector(b, m, p + "attn_norm.weight", m.hidden, 1.0F);
  add_test_matrix(b, m, p + "attn_q.weight", q_rows, m.hidden);
  add_test_matrix(b, m, p + "attn_k.weight", kv_rows, m.hidden);
  add_test_matrix(b, m, p + "attn_v.weight", kv_rows, m.hidden);
  if (m.architecture == "qwen2") {
    add_test_vector(b, m, p + "attn_q.bias", q_rows, 0.5F);
    add_test_vector(b, m, p + "attn_k.bias", kv_rows, 0.5F);
    add_test_vector(b, m, p + "attn_v.bias", kv_rows, 0.5F);
  }
  if (is_gemma) {
    add_test_vector(b, m, p + "attn_q_norm.weight", m.head_dim, 1.0F);
    add_test_vector(b, m, p + "attn_k_norm.weight", m.head_dim, 1.0F);
    add_test_vector(b, m, p + "post_attention_norm.weight", m.hidden, 1.0F);
    add_test_vector(b, m, p + "post_ffw_norm.weight", m.hidden, 1.0F);
  }
  add_test_matrix(b, m, p + "attn_output.weight", m.hidden, q_rows);
  if (m.rel_pos_dim > 0) {
    add_test_vector(b, m, p + "rel_pos_proj.weight", m.rel_pos_dim, 0.0F, kTestHeads);
  }
  add_test_vector(b, m, p + "ffn_norm.weight", m.hidden, 1.0F);
  add_test_matrix(b, m, p + "ffn_gate.weight", m.ffn, m.hidden);
  add_test_matrix(b, m, p + "ffn_up.weight", m.ffn, m.hidden);
  add_test_matrix(b, m, p + "ffn_down.weight", m.hidden, m.ffn);
}

// The metadata of a test model, for tests that change it.
inline formats::GgufBuilder test_metadata(const TestModel& m) {
  const std::string p = m.architecture + ".";
  formats::GgufBuilder b;
  b.key_string("general.architecture", m.architecture)
      .key_u32(p + "block_count", m.num_layers)
      .key_u32(p + "context_length", 2048)
      .key_u32(p + "embedding_length", m.hidden)
      .key_u32(p + "feed_forward_length", m.ffn)
      .key_u32(p + "attention.head_count", kTestHeads)
      .key_u32(p + "attention.head_count_kv", kTestKvHeads)
      .key_f32(p + "attention.layer_norm_rms_epsilon", 1e-5F);
  if (m.rel_pos_dim > 0) b.key_u32(p + "rel_pos_dim", m.rel_pos_dim);
  if (m.window > 0) b.key_u32(p + "attention.sliding_window", m.window);
  return b;
}

inline std::string test_file(const TestModel& m) {
  formats::GgufBuilder b = test_metadata(m);
  add_test_matrix(b, m, "token_embd.weight", kTestVocab, m.hidden);
  for (std::uint32_t layer = 0; layer < m.num_layers; ++layer) add_test_layer(b, m, layer);
  add_test_vector(b, m, "output_norm.weight", m.hidden, 1.0F);
  if (m.head) {
    b.tensor_f32("output.weight", {m.hidden, kTestVocab},
                 std::vector<float>(std::size_t{m.hidden} * kTestVocab, *m.head));
  }
  for (const std::string& name : m.more) add_test_vector(b, m, name, m.hidden, 0.0F);
  return b.build();
}

// Loads a file's bytes; the test fails when they are refused.
inline std::unique_ptr<Model> load_test_model(const std::string& bytes, platform::ThreadPool& pool,
                                              platform::IsaLevel level, bool elide = true) {
  const auto file = formats::open_bytes(bytes);
  EXPECT_TRUE(file.has_value()) << file.error().to_string();
  ModelOptions options{.level = level, .load = {}};
  options.load.elide = elide;
  auto model = Model::load(*file, pool, options);
  EXPECT_TRUE(model.has_value()) << model.error().to_string();
  return std::move(*model);
}

}  // namespace cicada::model
