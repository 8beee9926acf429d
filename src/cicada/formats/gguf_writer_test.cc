#include "cicada/formats/gguf_writer.h"

#include <gtest/gtest.h>

#include "cicada/formats/gguf_test_builder.h"

namespace cicada::formats {
namespace {

GgufBuilder every_value() {
  GgufBuilder builder;
  builder.key("u8", MetaType::kU8, Bytes().number(std::uint8_t{200}))
      .key("i8", MetaType::kI8, Bytes().number(std::int8_t{-3}))
      .key("u16", MetaType::kU16, Bytes().number(std::uint16_t{65535}))
      .key("i16", MetaType::kI16, Bytes().number(std::int16_t{-5}))
      .key("u32", MetaType::kU32, Bytes().number(4000000000U))
      .key("i32", MetaType::kI32, Bytes().number(-7))
      .key("u64", MetaType::kU64, Bytes().number(UINT64_MAX))
      .key("i64", MetaType::kI64, Bytes().number(INT64_MIN))
      .key("f32", MetaType::kF32, Bytes().number(0.1F))
      .key("f64", MetaType::kF64, Bytes().number(0.1))
      .key("yes", MetaType::kBool, Bytes().raw("\x01"))
      .key_string("text", "hello")
      .key_strings("texts", {"a", "", "ccc"})
      .key_array<std::int16_t>("ints", MetaType::kI16, {1, -2})
      .key_array<double>("doubles", MetaType::kF64, {0.25, -1.0})
      .tensor_f32("one", {3}, {1.0F, 2.0F, 3.0F})
      .tensor("two", {32, 2}, 2, std::string(36, 'x'));
  return builder;
}

TensorSource copy_from(const ModelFile& file) {
  return [&file](std::size_t index, const ByteSink& sink) {
    return sink(file.tensor_bytes(file.tensors()[index]));
  };
}

Result<void> write_file(const std::string& path, const Metadata& metadata,
                        const std::vector<TensorInfo>& tensors, const TensorSource& source) {
  CICADA_ASSIGN(auto out, platform::AtomicFileWriter::create(path));
  CICADA_TRY(write_gguf(out, metadata, tensors, source));
  return out.finish();
}

std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TensorInfo info_of(std::string name, std::vector<std::uint64_t> shape) {
  TensorInfo info;
  info.name = std::move(name);
  info.shape = std::move(shape);
  return info;
}

TEST(GgufWriter, WhatIsReadAndWrittenAgainIsTheSame) {
  const auto first = open_bytes(every_value().build());
  ASSERT_TRUE(first) << first.error().to_string();
  const TempFile a("writer_a.gguf");
  ASSERT_TRUE(write_file(a.path(), first->metadata(), first->tensors(), copy_from(*first)));
  const auto second = ModelFile::open(a.path());
  ASSERT_TRUE(second) << second.error().to_string();
  EXPECT_EQ(second->version(), 3U);
  EXPECT_EQ(second->size_bytes(), first->size_bytes());
  ASSERT_EQ(second->metadata().values().size(), first->metadata().values().size());
  for (const auto& [key, value] : first->metadata().values()) {
    const MetaValue* found = second->metadata().find(key);
    ASSERT_NE(found, nullptr) << key;
    EXPECT_EQ(found->type, value.type) << key;
    if (const auto* array = std::get_if<MetaArray>(&value.value)) {
      const auto& other = std::get<MetaArray>(found->value);
      EXPECT_EQ(other.element_type, array->element_type) << key;
      EXPECT_EQ(other.count, array->count) << key;
      EXPECT_TRUE(std::equal(other.bytes.begin(), other.bytes.end(), array->bytes.begin(),
                             array->bytes.end()))
          << key;
    }
  }
  EXPECT_EQ(second->metadata().get_u64("u64").value(), UINT64_MAX);
  EXPECT_EQ(second->metadata().get_string("text").value(), "hello");
  EXPECT_EQ(second->metadata().get_f64("f32").value(), static_cast<double>(0.1F));
  for (std::size_t i = 0; i < 2; ++i) {
    const TensorInfo& before = first->tensors()[i];
    const TensorInfo& after = second->tensors()[i];
    EXPECT_EQ(after.name, before.name);
    EXPECT_EQ(after.shape, before.shape);
    EXPECT_EQ(after.dtype, before.dtype);
    const auto bytes = second->tensor_bytes(after);
    const auto expected = first->tensor_bytes(before);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), expected.begin(), expected.end()));
  }
  // Keys are sorted now, so a second writing changes nothing at all.
  const TempFile b("writer_b.gguf");
  ASSERT_TRUE(write_file(b.path(), second->metadata(), second->tensors(), copy_from(*second)));
  EXPECT_EQ(slurp(b.path()), slurp(a.path()));
}

TEST(GgufWriter, AlignmentOfTheMetadataIsUsed) {
  GgufBuilder builder;
  builder.alignment = 128;
  builder.write_alignment().tensor_f32("one", {1}, {1.0F}).tensor_f32("two", {1}, {2.0F});
  const auto in = open_bytes(builder.build());
  ASSERT_TRUE(in);
  const TempFile out("writer_aligned.gguf");
  ASSERT_TRUE(write_file(out.path(), in->metadata(), in->tensors(), copy_from(*in)));
  const auto again = ModelFile::open(out.path());
  ASSERT_TRUE(again) << again.error().to_string();
  for (const TensorInfo& tensor : again->tensors()) EXPECT_EQ(tensor.offset_bytes % 128, 0U);
}

TEST(GgufWriter, WhatAReaderWouldRefuseIsNotWritten) {
  const TempFile out("writer_refused.gguf");
  const TensorSource nothing = [](std::size_t, const ByteSink&) { return Result<void>(); };
  const auto message = [&](const std::vector<TensorInfo>& tensors) {
    const auto done = write_file(out.path(), {}, tensors, nothing);
    return done ? std::string() : done.error().to_string();
  };
  EXPECT_TRUE(has(message({info_of("t", {1}), info_of("t", {1})}), "tensor t: is given twice"));
  EXPECT_TRUE(has(message({info_of("", {1})}), "name of 0 bytes"));
  EXPECT_TRUE(has(message({info_of("t", {})}), "tensor t: 0 dims"));
  EXPECT_TRUE(has(message({info_of("t", {1, 1, 1, 1, 1})}), "tensor t: 5 dims"));
  EXPECT_TRUE(has(message({info_of("t", {0})}), "tensor t: 0 bytes"));
  Metadata metadata;
  metadata.set("general.alignment", {MetaType::kU32, std::uint64_t{3}});
  EXPECT_FALSE(write_file(out.path(), metadata, {}, nothing));
  EXPECT_EQ(slurp(out.path()), "");  // the file that was there before is untouched
}

TEST(GgufWriter, SourceThatGivesTooLittleOrTooMuchIsAnError) {
  const TempFile out("writer_source.gguf");
  for (const std::size_t size : {3U, 5U}) {
    const TensorSource wrong = [size](std::size_t, const ByteSink& sink) {
      return sink(std::vector<std::byte>(size));
    };
    const auto done = write_file(out.path(), {}, {info_of("t", {1})}, wrong);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), Code::kInternal);
  }
}

}  // namespace
}  // namespace cicada::formats
