#include <gtest/gtest.h>

#include "cicada/formats/gguf_writer.h"
#include "cicada/formats/safetensors_layout.h"
#include "cicada/formats/safetensors_test_builder.h"
#include "cicada/formats/safetensors_writer.h"

namespace cicada::formats {
namespace {

constexpr std::string_view kEmbedding = "model.embed_tokens.weight";

SafetensorsBuilder small() {
  SafetensorsBuilder builder;
  builder.tensor_f32(kEmbedding, "[1,3]", {1.0F, 2.0F, 3.0F})
      .tensor("model.layers.0.self_attn.q_proj.weight", "BF16", "[2,2]", "abcdefgh")
      .tensor("model.layers.0.self_attn.rotary_emb.inv_freq", "F16", "[1]", "xx")
      .tensor("model.norm.weight", "F16", "[1]", "xy");
  return builder;
}

std::string refusal_of(const TempFolder& folder, std::string_view bytes) {
  const auto model = ModelFile::open(folder.put("model.safetensors", bytes));
  return model ? std::string() : model.error().to_string();
}

class SafetensorsTest : public testing::Test {
 protected:
  void SetUp() override { folder_.put("config.json", kSmallConfig); }
  std::string refused(std::string_view bytes) const { return refusal_of(folder_, bytes); }
  // A header with one tensor entry, and four bytes of data.
  std::string refused_entry(std::string_view entry) const {
    return refused(with_length(fmt::format(R"({{"t":{}}})", entry), "xxxx"));
  }

  TempFolder folder_{"safetensors"};
};

TEST_F(SafetensorsTest, IsReadInGgufsVocabulary) {
  const auto model = ModelFile::open(folder_.put("model.safetensors", small().build()));
  ASSERT_TRUE(model) << model.error().to_string();
  EXPECT_EQ(model->container(), Container::kSafetensors);
  EXPECT_EQ(model->version(), 0U);
  EXPECT_EQ(model->llama_rope_layout(), RopeLayout::kHalves);
  EXPECT_EQ(model->tensors().size(), 3U);  // the derived inv_freq is not among them
  const TensorInfo* q = model->find("blk.0.attn_q.weight");
  ASSERT_NE(q, nullptr);
  EXPECT_EQ(q->dtype, tensor::DType::kBF16);
  EXPECT_EQ(q->shape, (std::vector<std::uint64_t>{2, 2}));
  EXPECT_EQ(model->tensor_bytes(*q)[0], std::byte{'a'});
  EXPECT_EQ(model->metadata().get_u64("llama.embedding_length").value(), 8U);
}

TEST_F(SafetensorsTest, MetadataEntryIsFreeText) {
  EXPECT_EQ(refused(with_length(R"({"__metadata__":{"format":"pt"},"model.embed_tokens.weight":)"
                                R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]}}  )",
                                "xxxx")),
            "");
}

TEST_F(SafetensorsTest, MissingConfigIsNamed) {
  const TempFolder empty("safetensors_empty");
  EXPECT_TRUE(has(refusal_of(empty, small().build()), "config.json: no such file"));
}

TEST_F(SafetensorsTest, ShardsAreRefused) {
  for (const std::string_view name :
       {"model-00001-of-00003.safetensors", "m-2-of-10.safetensors"}) {
    const auto model = ModelFile::open(folder_.put(name, small().build()));
    ASSERT_FALSE(model) << name;
    EXPECT_TRUE(has(model.error().to_string(), "only single-file checkpoints are read"));
  }
  for (const std::string_view name :
       {"model-00001-of-00001.safetensors", "one-of-many.safetensors"}) {
    EXPECT_TRUE(ModelFile::open(folder_.put(name, small().build()))) << name;
  }
}

TEST_F(SafetensorsTest, OutputFollowsTheTie) {
  SafetensorsBuilder builder = small();
  builder.tensor_f32("lm_head.weight", "[1]", {1.0F});
  const auto tied = ModelFile::open(folder_.put("model.safetensors", builder.build()));
  ASSERT_TRUE(tied);
  EXPECT_EQ(tied->find("output.weight"), nullptr);
  std::string config(kSmallConfig);
  config.replace(config.find("true"), 4, "false");
  folder_.put("config.json", config);
  const auto untied = ModelFile::open(folder_.at("model.safetensors"));
  ASSERT_TRUE(untied);
  EXPECT_NE(untied->find("output.weight"), nullptr);
  EXPECT_TRUE(has(refused(small().build()), "tensor lm_head.weight: is missing"));
}

TEST_F(SafetensorsTest, SidecarAddsWhatConfigDoesNotSay) {
  GgufBuilder sidecar;
  sidecar.key_string("general.architecture", "llama")
      .key_u32("llama.embedding_length", 999)
      .key_strings("tokenizer.ggml.tokens", {"a", "b"});
  folder_.put("cicada_metadata.gguf", sidecar.build());
  auto opened = ModelFile::open(folder_.put("model.safetensors", small().build()));
  ASSERT_TRUE(opened) << opened.error().to_string();
  const ModelFile model = std::move(*opened);
  EXPECT_EQ(model.metadata().get_u64("llama.embedding_length").value(), 8U);  // config.json's
  EXPECT_EQ(model.metadata().get_strings("tokenizer.ggml.tokens").value(),
            (std::vector<std::string_view>{"a", "b"}));
}

TEST_F(SafetensorsTest, BrokenOrForeignSidecarIsRefused) {
  folder_.put("cicada_metadata.gguf", "GGUFnonsense");
  EXPECT_TRUE(has(refused(small().build()), "cicada_metadata.gguf: GGUF version"));
  folder_.put("cicada_metadata.gguf", "");
  EXPECT_TRUE(has(refused(small().build()), "cicada_metadata.gguf: magic"));
  folder_.put("cicada_metadata.gguf",
              GgufBuilder().key_string("general.architecture", "gemma3").build());
  EXPECT_TRUE(has(refused(small().build()), "describes architecture gemma3, config.json llama"));
}

// Hostile files.

TEST_F(SafetensorsTest, HeaderLength) {
  EXPECT_TRUE(has(refused(Bytes().number(std::uint64_t{1} << 60).raw("{}").text()),
                  "header of 1152921504606846976 bytes; the file has 2"));
  EXPECT_TRUE(has(refused(Bytes().number(UINT64_MAX).raw("{}").text()), "header of 1844674407370"));
  EXPECT_TRUE(has(refused(with_length("{" + std::string(kMaxSafetensorsHeaderBytes, ' '))),
                  "at most 16777216 are allowed"));
}

TEST_F(SafetensorsTest, HeaderText) {
  EXPECT_TRUE(has(refused(with_length("{\"a\":")), "safetensors header: not valid JSON"));
  EXPECT_TRUE(has(refused(with_length("{\"\xff\":1}")), "safetensors header: not valid JSON"));
  EXPECT_TRUE(has(
      refused(with_length("{\"a\":" + std::string(1000, '[') + "1" + std::string(1000, ']') + "}")),
      "nested deeper than 4"));
  EXPECT_TRUE(has(refused(with_length("{\"a\":1}")), "tensor a: is an integer, an object"));
  EXPECT_TRUE(has(refused(with_length("{\"\":{}}")), "name of 0 bytes"));
}

TEST_F(SafetensorsTest, Entries) {
  EXPECT_TRUE(has(refused_entry("{}"), "tensor t: has no dtype"));
  EXPECT_TRUE(has(refused_entry(R"({"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]})"),
                  "tensor t: type F8_E4M3 is not supported; supported: F32 F16 BF16"));
  EXPECT_TRUE(has(refused_entry(R"({"dtype":"F32","shape":[0],"data_offsets":[0,0]})"),
                  "tensor t: dimension 0 is 0"));
  EXPECT_TRUE(
      has(refused_entry(R"({"dtype":"F32","shape":[],"data_offsets":[0,4]})"), "tensor t: 0 dims"));
  EXPECT_TRUE(has(refused_entry(R"({"dtype":"F32","shape":[1,1,1,1,1],"data_offsets":[0,4]})"),
                  "tensor t: more than 4 dims"));
  EXPECT_TRUE(has(refused_entry(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})"),
                  "tensor t shape: is an integer, an unsigned integer"));
  EXPECT_TRUE(
      has(refused_entry(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]})"),
          "more than 2^64 elements"));
  EXPECT_TRUE(has(refused_entry(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})"),
                  "tensor t: 4 bytes of data, its shape and type need 8"));
  EXPECT_TRUE(has(refused_entry(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4,4]})"),
                  "tensor t: 3 data_offsets"));
  EXPECT_TRUE(has(refused_entry(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})"),
                  "tensor t: bytes 4 to 0 do not lie inside"));
  EXPECT_TRUE(
      has(refused_entry(R"({"dtype":"F32","shape":[1],"data_offsets":[1,18446744073709551615]})"),
          "do not lie inside the 4 bytes"));
}

TEST_F(SafetensorsTest, HolesOverlapsAndDuplicates) {
  const auto two = [this](std::string_view second, std::string_view offsets, std::size_t data) {
    return refused(
        with_length(fmt::format(R"({{"a":{{"dtype":"F32","shape":[1],"data_offsets":[0,4]}},)"
                                R"("{}":{{"dtype":"F32","shape":[1],"data_offsets":{}}}}})",
                                second, offsets),
                    std::string(data, 'x')));
  };
  EXPECT_TRUE(has(two("b", "[2,6]", 6), "tensor b: begins at byte 2 of the data, inside another"));
  EXPECT_TRUE(has(two("b", "[0,4]", 8), "inside another that ends at byte 4"));
  EXPECT_TRUE(has(two("b", "[8,12]", 12), "tensor b: begins at byte 8 of the data, after a hole"));
  EXPECT_TRUE(has(two("b", "[4,8]", 9), "1 bytes of data belong to no tensor"));
  EXPECT_TRUE(has(two("a", "[4,8]", 8), "tensor a: appears twice"));
  // Two spellings of one name.
  SafetensorsBuilder twice;
  twice.tensor("layers.0.pos_encoder.weight", "F32", "[1]", "xxxx")
      .tensor("model.layers.0.pos_encoder.weight", "F32", "[1]", "xxxx");
  EXPECT_TRUE(has(refused(twice.build()), "tensor blk.0.rel_pos_proj.weight: appears twice"));
}

TEST_F(SafetensorsTest, EveryTruncationIsRefused) {
  const std::string whole = small().build();
  ASSERT_EQ(refused(whole), "");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(refused(whole.substr(0, size)), "") << size;
  }
}

TEST_F(SafetensorsTest, WriterGivesWhatTheReaderReads) {
  TensorInfo one;
  one.name = "model.embed_tokens.weight";
  one.shape = {2, 1};
  TensorInfo two;
  two.name = "odd \"name\"";
  two.dtype = tensor::DType::kF16;
  two.shape = {3};
  const std::vector<std::string> data = {"01234567", "abcdef"};
  const TensorSource source = [&data](std::size_t index, const ByteSink& sink) {
    return sink(std::as_bytes(std::span(data[index])));
  };
  auto out = platform::AtomicFileWriter::create(folder_.at("model.safetensors"));
  ASSERT_TRUE(out);
  ASSERT_TRUE(write_safetensors(*out, {one, two}, source));
  ASSERT_TRUE(out->finish());
  const auto model = ModelFile::open(folder_.at("model.safetensors"));
  ASSERT_TRUE(model) << model.error().to_string();
  const TensorInfo* embedding = model->find("token_embd.weight");
  ASSERT_NE(embedding, nullptr);
  EXPECT_EQ(embedding->offset_bytes % 8, 0U);
  EXPECT_EQ(embedding->shape, one.shape);
  EXPECT_EQ(model->tensor_bytes(*model->find("odd \"name\""))[5], std::byte{'f'});
}

TEST_F(SafetensorsTest, WriterRefusesQuantisedTypesAndDoubleNames) {
  TensorInfo tensor;
  tensor.name = "t";
  tensor.shape = {32};
  const TensorSource nothing = [](std::size_t, const ByteSink&) { return Result<void>(); };
  auto out = platform::AtomicFileWriter::create(folder_.at("out.safetensors"));
  ASSERT_TRUE(out);
  EXPECT_EQ(write_safetensors(*out, {tensor, tensor}, nothing).error().code(),
            Code::kInvalidArgument);
  tensor.dtype = tensor::DType::kQ8_0;
  EXPECT_EQ(write_safetensors(*out, {tensor}, nothing).error().code(), Code::kUnsupported);
}

}  // namespace
}  // namespace cicada::formats
