#include <gtest/gtest.h>

#include "cicada/formats/gguf_test_builder.h"
#include "cicada/formats/quote.h"

namespace cicada::formats {
namespace {

constexpr std::uint32_t kF32 = 0;
constexpr std::uint32_t kQ4_0 = 2;
constexpr std::uint64_t kHuge = std::uint64_t{1} << 60;
constexpr std::uint64_t kHuger = std::uint64_t{1} << 63;

GgufBuilder small() {
  GgufBuilder builder;
  builder.key_string("general.architecture", "llama")
      .key_u32("llama.block_count", 7)
      .tensor_f32("norm", {3}, {1.0F, 2.0F, 3.0F})
      .tensor("weight", {32, 2}, kQ4_0, std::string(36, 'x'));
  return builder;
}

TEST(GgufReader, ReadsBothVersions) {
  for (const std::uint32_t version : {2U, 3U}) {
    GgufBuilder builder = small();
    builder.version = version;
    const auto model = open_bytes(builder.build());
    ASSERT_TRUE(model) << model.error().to_string();
    EXPECT_EQ(model->version(), version);
    EXPECT_EQ(model->container(), Container::kGguf);
    EXPECT_EQ(model->llama_rope_layout(), RopeLayout::kInterleaved);
    EXPECT_EQ(model->metadata().get_u64("llama.block_count").value().value(), 7U);
    EXPECT_EQ(model->metadata().get_string("general.architecture").value().value(), "llama");
  }
}

TEST(GgufReader, ShapesAreOutermostFirstAndBytesAreTheTensors) {
  const auto model = open_bytes(small().build());
  ASSERT_TRUE(model);
  ASSERT_EQ(model->tensors().size(), 2U);
  const TensorInfo* weight = model->find("weight");
  ASSERT_NE(weight, nullptr);
  EXPECT_EQ(weight->shape, (std::vector<std::uint64_t>{2, 32}));
  EXPECT_EQ(weight->dtype, tensor::DType::kQ4_0);
  EXPECT_EQ(weight->num_rows(), 2U);
  EXPECT_EQ(weight->row_elements(), 32U);
  EXPECT_EQ(model->tensor_bytes(*weight).size(), 36U);
  EXPECT_EQ(model->tensor_bytes(*weight).front(), std::byte{'x'});
  EXPECT_EQ(model->find("bias"), nullptr);
}

TEST(GgufReader, ViewsSurviveAMove) {
  auto model = open_bytes(small().build());
  ASSERT_TRUE(model);
  const ModelFile moved = std::move(*model);
  EXPECT_EQ(moved.metadata().get_string("general.architecture").value().value(), "llama");
  EXPECT_EQ(moved.tensor_bytes(*moved.find("weight")).back(), std::byte{'x'});
}

TEST(GgufReader, OtherAlignmentIsHonoured) {
  GgufBuilder builder;
  builder.alignment = 64;
  builder.write_alignment().tensor_f32("a", {1}, {1.0F}).tensor_f32("b", {1}, {2.0F});
  const auto model = open_bytes(builder.build());
  ASSERT_TRUE(model) << model.error().to_string();
  EXPECT_EQ(model->find("b")->offset_bytes - model->find("a")->offset_bytes, 64U);
}

TEST(GgufReader, FileWithoutTensorsIsRead) {
  EXPECT_EQ(refusal(GgufBuilder().key_u32("a", 1).build()), "");
  EXPECT_EQ(refusal(GgufBuilder().build()), "");
}

TEST(GgufReader, MissingFinalPaddingIsHarmless) {
  GgufBuilder builder = small();
  builder.pad_last_tensor = false;
  EXPECT_EQ(refusal(builder.build()), "");
}

// cases.md BC-19: hostile files by hand, each refused with a message that names the fault.

TEST(GgufReaderHostile, FileNameIsInTheMessage) {
  EXPECT_TRUE(has(refusal("GGUFx"), "open_bytes.gguf: version: 4 bytes are needed"));
}

TEST(GgufReaderHostile, Versions) {
  for (const std::uint32_t version : {0U, 1U, 99U}) {
    GgufBuilder builder = small();
    builder.version = version;
    EXPECT_TRUE(
        has(refusal(builder.build()), fmt::format("GGUF version {}; versions 2 and 3", version)));
  }
}

TEST(GgufReaderHostile, BigEndian) {
  GgufBuilder builder = small();
  builder.version = 0x03000000;
  EXPECT_TRUE(has(refusal(builder.build()), "big-endian GGUF v3"));
  builder.magic = "FUGG";
  EXPECT_TRUE(has(refusal(builder.build()), "big-endian GGUF"));
}

TEST(GgufReaderHostile, NotAModelFile) {
  EXPECT_TRUE(has(refusal(""), "the file is empty"));
  EXPECT_TRUE(has(refusal("\x01\x1b[2J, not a model"), "begins with \"\\x01\\x1b[2\""));
}

TEST(GgufReaderHostile, Counts) {
  for (const std::uint64_t count : {kHuge, kHuger}) {
    GgufBuilder tensors = small();
    tensors.num_tensors = count;
    EXPECT_TRUE(has(refusal(tensors.build()), fmt::format("tensor count: {}", count)));
    GgufBuilder keys = small();
    keys.num_keys = count;
    EXPECT_TRUE(has(refusal(keys.build()), fmt::format("metadata key count: {}", count)));
  }
  GgufBuilder modest = small();
  modest.num_tensors = 1000;
  EXPECT_TRUE(has(refusal(modest.build()), "tensor count: 1000, but the file has only"));
}

TEST(GgufReaderHostile, MoreKeysThanThereAre) {
  GgufBuilder builder;
  builder.num_keys = 2;
  builder.key_string("a", std::string(100, 'x'));
  EXPECT_TRUE(has(refusal(builder.build()), "metadata key 2 of 2: 8 bytes are needed"));
}

TEST(GgufReaderHostile, EmptyAndLongKeys) {
  EXPECT_TRUE(has(refusal(GgufBuilder().key_u32("", 1).build()), "key 1 of 1: is empty"));
  EXPECT_TRUE(has(refusal(GgufBuilder().key_u32(std::string(kMaxKeyBytes + 1, 'k'), 1).build()),
                  "65537 bytes long, at most 65536"));
}

TEST(GgufReaderHostile, StringOf2To63Bytes) {
  const Bytes value = Bytes().number(kHuger).raw("abc");
  EXPECT_TRUE(has(refusal(GgufBuilder().key("text", MetaType::kString, value).build()),
                  "key text: 9223372036854775808 bytes are claimed"));
}

TEST(GgufReaderHostile, ArraysOf2To62) {
  const std::uint64_t count = std::uint64_t{1} << 62;
  for (const MetaType type : {MetaType::kU8, MetaType::kU64, MetaType::kString}) {
    const Bytes value = GgufBuilder::array_head(type, count);
    EXPECT_TRUE(has(refusal(GgufBuilder().key("list", MetaType::kArray, value).build()),
                    "key list: an array of 4611686018427387904 "));
  }
}

TEST(GgufReaderHostile, StringInsideAnArrayBeyondTheFile) {
  const Bytes value = GgufBuilder::array_head(MetaType::kString, 2).string("fine").number(kHuger);
  EXPECT_TRUE(has(refusal(GgufBuilder().key("list", MetaType::kArray, value).build()),
                  "key list: 9223372036854775808 bytes are claimed"));
}

TEST(GgufReaderHostile, NestedArrays) {
  const Bytes value = GgufBuilder::array_head(MetaType::kArray, 1).raw(std::string(64, '\0'));
  EXPECT_TRUE(has(refusal(GgufBuilder().key("list", MetaType::kArray, value).build()),
                  "key list: an array of arrays"));
}

TEST(GgufReaderHostile, UnknownValueTypeAndBadBool) {
  EXPECT_TRUE(has(refusal(GgufBuilder().key("k", MetaType{13}, Bytes().number(0)).build()),
                  "key k: value type 13, at most 12"));
  EXPECT_TRUE(has(refusal(GgufBuilder().key("k", MetaType::kBool, Bytes().raw("\x02")).build()),
                  "key k: a bool of 2"));
  EXPECT_TRUE(
      has(refusal(GgufBuilder().key_array<char>("k", MetaType::kBool, {'\x00', '\x03'}).build()),
          "key k: a bool of 3"));
}

TEST(GgufReaderHostile, DuplicateKey) {
  EXPECT_TRUE(
      has(refusal(GgufBuilder().key_u32("a", 1).key_u32("a", 2).build()), "key a: appears twice"));
}

TEST(GgufReaderHostile, Alignments) {
  for (const std::uint32_t alignment : {0U, 3U, 4U, 24U, 1U << 21}) {
    GgufBuilder builder = small();
    builder.key_u32("general.alignment", alignment);
    EXPECT_TRUE(has(refusal(builder.build()),
                    fmt::format("key general.alignment: is {}, a power of two", alignment)));
  }
  GgufBuilder builder = small();
  builder.key_string("general.alignment", "32");
  EXPECT_TRUE(has(refusal(builder.build()), "is a string, an unsigned integer is needed"));
}

TEST(GgufReaderHostile, Dimensions) {
  EXPECT_TRUE(has(refusal(GgufBuilder().tensor("t", {4, 0}, kF32, "").build()),
                  "tensor t: dimension 1 is 0"));
  EXPECT_TRUE(has(refusal(GgufBuilder().tensor("t", {}, kF32, "xxxxxxxxxxxx").build()),
                  "tensor t: 0 dims, 1 to 4"));
  EXPECT_TRUE(has(refusal(GgufBuilder().tensor("t", {1, 1, 1, 1, 1}, kF32, "xxxx").build()),
                  "tensor t: 5 dims, 1 to 4"));
}

TEST(GgufReaderHostile, DimensionsWhoseProductOverflows) {
  const std::uint64_t side = std::uint64_t{1} << 32;
  EXPECT_TRUE(has(refusal(GgufBuilder().tensor("t", {side, side}, kF32, "xxxx").build()),
                  "tensor t: shape [4294967296, 4294967296] has more than 2^64 elements"));
  EXPECT_TRUE(has(refusal(GgufBuilder().tensor("t", {side, side / 2}, kF32, "xxxx").build()),
                  "has more than 2^64 bytes"));
}

TEST(GgufReaderHostile, OffsetsBeyondTheFile) {
  EXPECT_TRUE(has(refusal(GgufBuilder().tensor("t", {1}, kF32, "xxxx", 1 << 20).build()),
                  "tensor t: 4 bytes at byte"));
  const std::uint64_t near_end = UINT64_MAX - 31;  // a multiple of 32
  EXPECT_TRUE(has(refusal(GgufBuilder().tensor("t", {1}, kF32, "xxxx", near_end).build()),
                  "tensor t: offset 18446744073709551584 lies beyond any file"));
  EXPECT_TRUE(has(refusal(GgufBuilder().tensor("t", {1}, kF32, "xxxx", kHuger).build()),
                  "do not lie inside the file"));
  EXPECT_TRUE(has(refusal(GgufBuilder().tensor("t", {1}, kF32, "xxxx", 4).build()),
                  "tensor t: offset 4 is not a multiple of the alignment 32"));
}

TEST(GgufReaderHostile, TwoTensorsAtOneOffset) {
  EXPECT_TRUE(has(refusal(GgufBuilder()
                              .tensor("one", {1}, kF32, "xxxx", 0)
                              .tensor("two", {1}, kF32, "xxxx", 0)
                              .build()),
                  "overlap"));
}

TEST(GgufReaderHostile, PartlyOverlappingTensors) {
  EXPECT_TRUE(has(refusal(GgufBuilder()
                              .tensor("one", {16}, kF32, std::string(64, 'x'), 0)
                              .tensor("two", {1}, kF32, "xxxx", 32)
                              .build()),
                  "tensors one (byte "));
}

TEST(GgufReaderHostile, DuplicateAndEmptyTensorNames) {
  EXPECT_TRUE(has(
      refusal(GgufBuilder().tensor("t", {1}, kF32, "xxxx").tensor("t", {1}, kF32, "xxxx").build()),
      "tensor t: appears twice"));
  EXPECT_TRUE(has(refusal(GgufBuilder().tensor("", {1}, kF32, "xxxx").build()),
                  "tensor 1 of 1: has an empty name"));
}

TEST(GgufReaderHostile, UnsupportedTypesAreNamed) {
  EXPECT_TRUE(has(refusal(GgufBuilder().tensor("x", {256}, 16, std::string(66, 'x')).build()),
                  "tensor x: type iq2_xxs is not supported; supported: f32 f16 bf16 q4_0"));
  EXPECT_TRUE(has(refusal(GgufBuilder().tensor("x", {256}, 12345, std::string(66, 'x')).build()),
                  "tensor x: type number 12345 is not supported"));
}

TEST(GgufReaderHostile, RowsThatAreNotWholeBlocks) {
  // 2 × 16 elements are one block in all, but no row is.
  EXPECT_TRUE(has(refusal(GgufBuilder().tensor("t", {16, 2}, kQ4_0, std::string(18, 'x')).build()),
                  "tensor t: rows of 16 elements are not whole blocks of q4_0 (32)"));
}

TEST(GgufReaderHostile, EveryTruncationIsRefused) {
  GgufBuilder builder = small();
  builder.key_strings("list", {"a", "bc"});
  const std::string whole = builder.build();
  const std::size_t unpadded = whole.size() - 28;  // 36 bytes of data in 64
  ASSERT_EQ(refusal(whole), "");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    if (size == unpadded) continue;  // complete, only its padding is missing
    EXPECT_NE(refusal(whole.substr(0, size)), "") << size;
  }
}

TEST(GgufReaderHostile, EveryFlippedByteIsReadOrRefused) {
  // Nothing to assert but survival and checked tensors; the fuzzer goes further.
  const std::string whole = small().build();
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string bytes = whole;
    bytes[i] = static_cast<char>(~bytes[i]);
    const auto model = open_bytes(bytes);
    if (!model) continue;
    for (const TensorInfo& tensor : model->tensors()) {
      EXPECT_EQ(model->tensor_bytes(tensor).size(), tensor.size_bytes);
    }
  }
}

TEST(Quote, ControlAndOtherBytesAreEscapedAndLongNamesCut) {
  EXPECT_EQ(quote("blk.0"), "blk.0");
  EXPECT_EQ(quote("a\x1b[31m\n\xff\\"), "a\\x1b[31m\\x0a\\xff\\x5c");
  EXPECT_EQ(quote(std::string(100, 'a')), std::string(80, 'a') + "…");
}

}  // namespace
}  // namespace cicada::formats
