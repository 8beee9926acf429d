#include "cicada/formats/convert.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <cstring>

#include "cicada/formats/safetensors_test_builder.h"
#include "cicada/tensor/dequantize.h"

namespace cicada::formats {
namespace {

using tensor::DType;

constexpr std::uint32_t kQ8_0 = 8;

std::vector<float> values_of(const ModelFile& file, std::string_view name) {
  const TensorInfo* tensor = file.find(name);
  EXPECT_NE(tensor, nullptr) << name;
  if (tensor == nullptr) return {};
  std::vector<float> values(tensor->num_elements());
  tensor::dequantize_row(tensor->dtype, file.tensor_bytes(*tensor), values);
  return values;
}

std::vector<float> ramp(std::size_t count, float scale) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = scale * std::sin(static_cast<float>(i) + scale);
  }
  return values;
}

// A llama of one layer: embedding 32, heads of 8 (4, and 2 for k and v), feed-forward 40.
GgufBuilder llama(std::string_view architecture = "llama") {
  const std::string prefix = std::string(architecture) + ".";
  GgufBuilder builder;
  builder.key_string("general.architecture", architecture)
      .key_u32("general.file_type", 0)
      .key_u32(prefix + "block_count", 1)
      .key_u32(prefix + "context_length", 64)
      .key_u32(prefix + "embedding_length", 32)
      .key_u32(prefix + "feed_forward_length", 40)
      .key_u32(prefix + "attention.head_count", 4)
      .key_u32(prefix + "attention.head_count_kv", 2)
      .key_f32(prefix + "attention.layer_norm_rms_epsilon", 1e-5F)
      .key_f32(prefix + "rope.freq_base", 500000.0F)
      .key_strings("tokenizer.ggml.tokens", {"a", "b", "c"})
      .key_u32("tokenizer.ggml.bos_token_id", 1)
      .tensor_f32("token_embd.weight", {32, 3}, ramp(96, 1.0F))
      .tensor_f32("blk.0.attn_norm.weight", {32}, ramp(32, 2.0F))
      .tensor_f32("blk.0.attn_q.weight", {32, 32}, ramp(1024, 3.0F))
      .tensor_f32("blk.0.attn_q.bias", {32}, ramp(32, 4.0F))
      .tensor_f32("blk.0.attn_k.weight", {32, 16}, ramp(512, 5.0F))
      .tensor_f32("blk.0.attn_v.weight", {32, 16}, ramp(512, 6.0F))
      .tensor_f32("blk.0.ffn_down.weight", {40, 32}, ramp(1280, 7.0F))
      .tensor_f32("blk.0.ffn_up.weight", {32, 40}, std::vector<float>(1280))
      .tensor_f32("output_norm.weight", {32}, ramp(32, 8.0F));
  return builder;
}

class ConvertTest : public testing::Test {
 protected:
  Result<ConvertReport> run(std::string_view in, std::string_view out,
                            std::optional<DType> type = std::nullopt) const {
    ConvertOptions options;
    options.input_path = folder_.at(in);
    options.output_path = folder_.at(out);
    options.type = type;
    return convert(options);
  }
  std::string refused(std::string_view in, std::string_view out,
                      std::optional<DType> type = std::nullopt) const {
    const auto report = run(in, out, type);
    return report ? std::string() : report.error().to_string();
  }
  ModelFile open(std::string_view name) const {
    auto file = ModelFile::open(folder_.at(name));
    EXPECT_TRUE(file) << file.error().to_string();
    return std::move(*file);
  }

  TempFolder folder_{"convert"};
};

TEST_F(ConvertTest, F32StaysExact) {
  folder_.put("in.gguf", llama().build());
  const auto report = run("in.gguf", "out.gguf", DType::kF32);
  ASSERT_TRUE(report) << report.error().to_string();
  const ModelFile in = open("in.gguf");
  const ModelFile out = open("out.gguf");
  ASSERT_EQ(out.tensors().size(), in.tensors().size());
  for (const TensorInfo& tensor : in.tensors()) {
    EXPECT_EQ(values_of(out, tensor.name), values_of(in, tensor.name)) << tensor.name;
  }
  EXPECT_EQ(report->files, (std::vector<std::string>{folder_.at("out.gguf")}));
}

TEST_F(ConvertTest, TypesAndFallbacks) {
  folder_.put("in.gguf", llama().build());
  const auto report = run("in.gguf", "out.gguf", DType::kQ8_0);
  ASSERT_TRUE(report) << report.error().to_string();
  const ModelFile out = open("out.gguf");
  EXPECT_EQ(out.find("blk.0.attn_q.weight")->dtype, DType::kQ8_0);
  EXPECT_EQ(out.find("token_embd.weight")->dtype, DType::kQ8_0);
  EXPECT_EQ(out.find("blk.0.attn_norm.weight")->dtype, DType::kF32);
  EXPECT_EQ(out.find("blk.0.attn_q.bias")->dtype, DType::kF32);
  EXPECT_EQ(out.find("blk.0.ffn_down.weight")->dtype, DType::kF16);  // rows of 40
  for (const ConvertedTensor& tensor : report->tensors) {
    EXPECT_EQ(tensor.fell_back, tensor.name == "blk.0.ffn_down.weight") << tensor.name;
    EXPECT_EQ(tensor.from, DType::kF32);
    EXPECT_EQ(tensor.to, out.find(tensor.name)->dtype);
  }
  EXPECT_EQ(out.metadata().get_u64("general.file_type").value(), 7U);
  EXPECT_EQ(out.metadata().get_u64("general.quantization_version").value(), 2U);
  EXPECT_EQ(out.metadata().get_strings("tokenizer.ggml.tokens").value()->size(), 3U);
}

TEST_F(ConvertTest, ErrorsOfEachTypeAreBounded) {
  folder_.put("in.gguf", llama().build());
  const ModelFile in = open("in.gguf");
  const auto before = values_of(in, "blk.0.attn_q.weight");  // at most 3 in magnitude
  const std::vector<std::pair<DType, float>> bounds = {
      {DType::kF16, 0x1p-10F},             // half a unit of numbers under 4
      {DType::kBF16, 0x1p-7F},             //
      {DType::kQ8_0, 1.5F / 127 + 2e-3F},  // half a step, and the scale's own rounding
      {DType::kQ4_0, 3.0F / 8 + 2e-3F},    // a whole step at the end that does not exist
  };
  for (const auto& [type, bound] : bounds) {
    ASSERT_TRUE(run("in.gguf", "out.gguf", type));
    const auto after = values_of(open("out.gguf"), "blk.0.attn_q.weight");
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_LE(std::fabs(after[i] - before[i]), bound) << tensor::name(type) << i;
    }
  }
}

TEST_F(ConvertTest, ZeroTensorsStayZero) {
  folder_.put("in.gguf", llama().build());
  for (const DType type : {DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0}) {
    ASSERT_TRUE(run("in.gguf", "out.gguf", type));
    for (const float value : values_of(open("out.gguf"), "blk.0.ffn_up.weight")) {
      EXPECT_EQ(value, 0.0F);
    }
  }
}

TEST_F(ConvertTest, QuantisedInputWithoutATypeIsCopiedByteForByte) {
  GgufBuilder builder = llama();
  std::string blocks(68, 'q');
  builder.tensor("extra", {32, 2}, kQ8_0, blocks);
  folder_.put("in.gguf", builder.build());
  ASSERT_TRUE(run("in.gguf", "out.gguf"));
  const ModelFile out = open("out.gguf");
  const auto bytes = out.tensor_bytes(*out.find("extra"));
  EXPECT_EQ(std::memcmp(bytes.data(), blocks.data(), blocks.size()), 0);
  EXPECT_EQ(out.metadata().get_u64("general.file_type").value(), 0U);  // unchanged
}

TEST_F(ConvertTest, GgufToSafetensorsAndBackIsTheSame) {
  for (const std::string_view architecture : {"llama", "cicada-v1"}) {
    GgufBuilder builder = llama(architecture);
    if (architecture == "cicada-v1") {
      builder.key_u32("cicada-v1.rel_pos_dim", 8)
          .tensor_f32("blk.0.rel_pos_proj.weight", {8, 4}, ramp(32, 9.0F));
    }
    folder_.put("in.gguf", builder.build());
    const auto there = run("in.gguf", "model.safetensors");
    ASSERT_TRUE(there) << there.error().to_string();
    EXPECT_EQ(there->files.size(), 3U);
    const auto back = run("model.safetensors", "back.gguf");
    ASSERT_TRUE(back) << back.error().to_string();
    const ModelFile in = open("in.gguf");
    const ModelFile out = open("back.gguf");
    ASSERT_EQ(out.tensors().size(), in.tensors().size());
    for (const TensorInfo& tensor : in.tensors()) {
      EXPECT_EQ(values_of(out, tensor.name), values_of(in, tensor.name)) << tensor.name;
      EXPECT_EQ(out.find(tensor.name)->shape, tensor.shape);
    }
    for (const auto& [key, value] : in.metadata().values()) {
      EXPECT_NE(out.metadata().find(key), nullptr) << key;
    }
    EXPECT_EQ(out.metadata().get_strings("tokenizer.ggml.tokens").value(),
              in.metadata().get_strings("tokenizer.ggml.tokens").value());
  }
}

TEST_F(ConvertTest, RowsOfQueriesAndKeysAreReordered) {
  folder_.put("in.gguf", llama().build());
  ASSERT_TRUE(run("in.gguf", "model.safetensors"));
  const ModelFile in = open("in.gguf");
  const ModelFile out = open("model.safetensors");
  const auto check = [&](std::string_view name, std::size_t rows, std::size_t row_elements) {
    const auto before = values_of(in, name);
    const auto after = values_of(out, name);
    for (std::size_t row = 0; row < rows; ++row) {
      // docs/formats/safetensors.md: row s·4 + i of a head of 8 comes from row 2i + s.
      const std::size_t source = row / 8 * 8 + row % 4 * 2 + row % 8 / 4;
      for (std::size_t e = 0; e < row_elements; ++e) {
        ASSERT_EQ(after[row * row_elements + e], before[source * row_elements + e]) << name << row;
      }
    }
  };
  check("blk.0.attn_q.weight", 32, 32);
  check("blk.0.attn_k.weight", 16, 32);
  check("blk.0.attn_q.bias", 32, 1);
  EXPECT_EQ(values_of(out, "blk.0.attn_v.weight"), values_of(in, "blk.0.attn_v.weight"));
}

TEST_F(ConvertTest, SafetensorsTypesAndNames) {
  folder_.put("in.gguf", llama().build());
  ASSERT_TRUE(run("in.gguf", "model.safetensors", DType::kBF16));
  const std::string bytes = read_all(folder_.at("model.safetensors"));
  EXPECT_NE(bytes.find("\"model.layers.0.self_attn.q_proj.weight\":{\"dtype\":\"BF16\""),
            std::string::npos);
  EXPECT_NE(bytes.find("\"model.norm.weight\":{\"dtype\":\"F32\""), std::string::npos);
  const std::string config = read_all(folder_.at("config.json"));
  EXPECT_NE(config.find("\"torch_dtype\":\"bfloat16\""), std::string::npos);
  EXPECT_NE(config.find("\"tie_word_embeddings\":true"), std::string::npos);
  EXPECT_NE(config.find("\"attention_bias\":true"), std::string::npos);
  EXPECT_NE(config.find("\"vocab_size\":3"), std::string::npos);
  EXPECT_TRUE(has(refused("in.gguf", "model.safetensors", DType::kQ8_0),
                  "type q8_0 cannot be written as safetensors"));
}

TEST_F(ConvertTest, OverflowsAreCounted) {
  GgufBuilder builder = llama();
  builder.tensor_f32("big", {4, 2}, {1e6F, -65520.0F, 65519.0F, 1.0F, HUGE_VALF, 0, 0, 0});
  folder_.put("in.gguf", builder.build());
  const auto report = run("in.gguf", "out.gguf", DType::kF16);
  ASSERT_TRUE(report);
  for (const ConvertedTensor& tensor : report->tensors) {
    EXPECT_EQ(tensor.num_overflowed, tensor.name == "big" ? 2U : 0U) << tensor.name;
  }
}

TEST_F(ConvertTest, NumbersLostToAScaleOrANeighbourAreCounted) {
  std::vector<float> values(96, 1.0F);
  std::fill(values.begin(), values.begin() + 32, 3e38F);  // the scale of the block overflows
  values[40] = std::nanf("");                             // takes its block with it
  values[70] = HUGE_VALF;                                 // as this does
  GgufBuilder builder = llama();
  values.resize(192);
  builder.tensor_f32("big", {96, 2}, values);
  folder_.put("in.gguf", builder.build());
  const std::vector<std::pair<DType, std::uint64_t>> lost = {
      {DType::kF32, 0}, {DType::kF16, 32}, {DType::kQ8_0, 94}, {DType::kQ4_0, 94}};
  for (const auto& [type, count] : lost) {
    const auto report = run("in.gguf", "out.gguf", type);
    ASSERT_TRUE(report);
    for (const ConvertedTensor& tensor : report->tensors) {
      EXPECT_EQ(tensor.num_overflowed, tensor.name == "big" ? count : 0U) << tensor.name;
    }
  }
}

TEST_F(ConvertTest, ConfigOfAnotherFileIsNotOverwritten) {
  folder_.put("in.gguf", llama().build());
  ASSERT_TRUE(run("in.gguf", "a.safetensors"));
  const std::string config = read_all(folder_.at("config.json"));
  EXPECT_TRUE(has(refused("in.gguf", "b.safetensors"),
                  "config.json: exists and belongs to "
                  "a.safetensors"));
  EXPECT_EQ(read_all(folder_.at("config.json")), config);
  ASSERT_TRUE(run("in.gguf", "a.safetensors", DType::kF16));  // over itself
  std::filesystem::remove(folder_.at("a.safetensors"));
  ASSERT_TRUE(run("in.gguf", "b.safetensors"));  // nobody needs it any more
  EXPECT_TRUE(has(refused("in.gguf", "a.safetensors"), "belongs to b.safetensors"));
  std::filesystem::remove(folder_.at("b.safetensors"));
  EXPECT_TRUE(has(refused("in.gguf", "\xff.safetensors"), "its name is not UTF-8"));
}

TEST_F(ConvertTest, OutputThroughALinkReplacesWhatItLeadsTo) {
  folder_.put("in.gguf", llama().build());
  folder_.put("real.gguf", "old");
  std::filesystem::create_symlink("real.gguf", folder_.at("link.gguf"));
  const auto report = run("in.gguf", "link.gguf");
  ASSERT_TRUE(report) << report.error().to_string();
  EXPECT_TRUE(std::filesystem::is_symlink(folder_.at("link.gguf")));
  EXPECT_EQ(open("real.gguf").tensors().size(), report->tensors.size());
}

TEST_F(ConvertTest, Refusals) {
  folder_.put("in.gguf", llama().build());
  EXPECT_TRUE(has(refused("in.gguf", "in.gguf"), "is both input and output"));
  std::filesystem::create_symlink(folder_.at("in.gguf"), folder_.at("link.gguf"));
  EXPECT_TRUE(has(refused("in.gguf", "link.gguf"), "is both input and output"));
  EXPECT_TRUE(has(refused("in.gguf", "out.bin"), "must end in .gguf or .safetensors"));
  EXPECT_TRUE(has(refused("in.gguf", "out.gguf", DType::kQ4_K), "type q4_k cannot be written"));
  EXPECT_TRUE(has(refused("none.gguf", "out.gguf"), "none.gguf: no such file"));
  EXPECT_TRUE(has(refused("in.gguf", "missing/out.gguf"), "cannot be written"));
  folder_.put("gemma.gguf", GgufBuilder().key_string("general.architecture", "gemma3").build());
  EXPECT_TRUE(has(refused("gemma.gguf", "out.safetensors"),
                  "architecture gemma3 cannot be written as safetensors"));
  GgufBuilder odd = llama();
  odd.tensor_f32("rope_freqs.weight", {4}, {1, 1, 1, 1});
  folder_.put("odd.gguf", odd.build());
  EXPECT_TRUE(has(refused("odd.gguf", "out.safetensors"),
                  "tensor rope_freqs.weight: has no name in a safetensors checkpoint"));
  folder_.put("config.json", "{\"model_type\": \"llama\"}");
  EXPECT_TRUE(has(refused("in.gguf", "out.safetensors"), "was not written by convert"));
}

TEST_F(ConvertTest, ProgressReachesTheTotalAndCanStop) {
  folder_.put("in.gguf", llama().build());
  ConvertOptions options;
  options.input_path = folder_.at("in.gguf");
  options.output_path = folder_.at("out.gguf");
  std::uint64_t last = 0;
  options.progress = [&last](const ConvertProgress& progress) {
    EXPECT_GT(progress.done_bytes, last);
    EXPECT_LE(progress.done_bytes, progress.total_bytes);
    last = progress.done_bytes;
    return true;
  };
  const auto report = convert(options);
  ASSERT_TRUE(report);
  EXPECT_EQ(last, report->output_bytes);

  for (const std::string_view out : {"stopped.gguf", "stopped.safetensors"}) {
    options.output_path = folder_.at(out);
    const std::size_t num_files = folder_.num_files();
    int calls = 0;
    options.progress = [&calls](const ConvertProgress&) { return ++calls < 3; };
    const auto stopped = convert(options);
    ASSERT_FALSE(stopped);
    EXPECT_EQ(stopped.error().code(), Code::kCancelled);
    EXPECT_EQ(folder_.num_files(), num_files) << "a partial file was left";
  }
}

TEST_F(ConvertTest, FullDiskLeavesNothingBehind) {
  folder_.put("in.gguf", llama().build());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);  // EFBIG instead
  const rlimit small{4096, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto failed = run("in.gguf", "out.gguf");
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::kIo);
  EXPECT_EQ(folder_.num_files(), 1U);
}

TEST_F(ConvertTest, LongRowsPassInPieces) {
  // One row longer than a piece, and more bytes than one flush.
  const auto values = ramp(std::size_t{1} << 19, 1.0F);
  GgufBuilder builder;
  builder.tensor_f32("long", {values.size() / 2, 2}, values);
  folder_.put("in.gguf", builder.build());
  ConvertOptions options;
  options.input_path = folder_.at("in.gguf");
  options.output_path = folder_.at("out.gguf");
  options.type = DType::kF16;
  int calls = 0;
  options.progress = [&calls](const ConvertProgress&) { return ++calls > 0; };
  ASSERT_TRUE(convert(options));
  const auto after = values_of(open("out.gguf"), "long");
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_LE(std::fabs(after[i] - values[i]), 0x1p-12F) << i;
  }
  EXPECT_GE(calls, 1);
}

}  // namespace
}  // namespace cicada::formats
