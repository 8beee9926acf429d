#include "cicada/formats/metadata.h"

#include <gtest/gtest.h>

#include "cicada/formats/gguf_test_builder.h"

namespace cicada::formats {
namespace {

template <typename T>
std::string message(const Result<T>& result) {
  return result ? std::string() : result.error().to_string();
}

GgufBuilder all_types() {
  GgufBuilder builder;
  builder.key("u8", MetaType::kU8, Bytes().number(std::uint8_t{200}))
      .key("i8", MetaType::kI8, Bytes().number(std::int8_t{-3}))
      .key("u16", MetaType::kU16, Bytes().number(std::uint16_t{65535}))
      .key("i16", MetaType::kI16, Bytes().number(std::int16_t{5}))
      .key("u32", MetaType::kU32, Bytes().number(4000000000U))
      .key("i32", MetaType::kI32, Bytes().number(-7))
      .key("u64", MetaType::kU64, Bytes().number(UINT64_MAX))
      .key("i64", MetaType::kI64, Bytes().number(std::int64_t{9}))
      .key("f32", MetaType::kF32, Bytes().number(0.1F))
      .key("f64", MetaType::kF64, Bytes().number(0.1))
      .key("yes", MetaType::kBool, Bytes().raw("\x01"))
      .key_string("text", "hello")
      .key_strings("texts", {"a", "", "ccc"})
      .key_array<std::int32_t>("ints", MetaType::kI32, {1, -2})
      .key_array<std::uint64_t>("big", MetaType::kU64, {1, UINT64_MAX})
      .key_array<float>("floats", MetaType::kF32, {0.5F, -1.0F})
      .key_array<double>("doubles", MetaType::kF64, {0.25})
      .key_array<char>("bools", MetaType::kBool, {1, 0, 1})
      .key_array<char>("none", MetaType::kU8, {});
  return builder;
}

class MetadataTest : public testing::Test {
 protected:
  void SetUp() override {
    auto model = open_bytes(all_types().build());
    ASSERT_TRUE(model) << model.error().to_string();
    model_ = std::make_unique<ModelFile>(std::move(*model));
  }
  const Metadata& metadata() const { return model_->metadata(); }

  std::unique_ptr<ModelFile> model_;
};

TEST_F(MetadataTest, IntegersOfAnyWidthAreAcceptedWhereTheyFit) {
  EXPECT_EQ(metadata().get_u64("u8").value(), 200U);
  EXPECT_EQ(metadata().get_u64("u16").value(), 65535U);
  EXPECT_EQ(metadata().get_u64("i16").value(), 5U);
  EXPECT_EQ(metadata().get_u64("u32").value(), 4000000000U);
  EXPECT_EQ(metadata().get_u64("u64").value(), UINT64_MAX);
  EXPECT_EQ(metadata().get_u64("i64").value(), 9U);
  EXPECT_EQ(message(metadata().get_u64("i32")), "key i32: is -7, an unsigned integer is needed");
  EXPECT_EQ(message(metadata().get_u64("i8")), "key i8: is -3, an unsigned integer is needed");
}

TEST_F(MetadataTest, MissingKeysAreNothing) {
  EXPECT_FALSE(metadata().get_u64("x").value().has_value());
  EXPECT_FALSE(metadata().get_f64("x").value().has_value());
  EXPECT_FALSE(metadata().get_bool("x").value().has_value());
  EXPECT_FALSE(metadata().get_string("x").value().has_value());
  EXPECT_FALSE(metadata().get_strings("x").value().has_value());
  EXPECT_FALSE(metadata().get_ints("x").value().has_value());
  EXPECT_FALSE(metadata().get_floats("x").value().has_value());
  EXPECT_FALSE(metadata().get_bools("x").value().has_value());
}

TEST_F(MetadataTest, OtherScalars) {
  EXPECT_EQ(metadata().get_f64("f32").value(), static_cast<double>(0.1F));
  EXPECT_EQ(metadata().get_f64("f64").value(), 0.1);
  EXPECT_EQ(metadata().get_bool("yes").value(), true);
  EXPECT_EQ(metadata().get_string("text").value(), "hello");
}

TEST_F(MetadataTest, Arrays) {
  EXPECT_EQ(**metadata().get_strings("texts"), (std::vector<std::string_view>{"a", "", "ccc"}));
  EXPECT_EQ(**metadata().get_ints("ints"), (std::vector<std::int64_t>{1, -2}));
  EXPECT_EQ(**metadata().get_floats("floats"), (std::vector<float>{0.5F, -1.0F}));
  EXPECT_EQ(**metadata().get_floats("doubles"), (std::vector<float>{0.25F}));
  EXPECT_EQ(**metadata().get_bools("bools"), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(**metadata().get_ints("none"), (std::vector<std::int64_t>{}));
  EXPECT_TRUE(has(message(metadata().get_ints("big")), "key big: element 1 does not fit"));
}

TEST_F(MetadataTest, WrongTypesAreNamed) {
  EXPECT_EQ(message(metadata().get_u64("text")),
            "key text: is a string, an unsigned integer is needed");
  EXPECT_EQ(message(metadata().get_u64("yes")),
            "key yes: is a bool, an unsigned integer is needed");
  EXPECT_EQ(message(metadata().get_u64("f32")), "key f32: is a f32, an unsigned integer is needed");
  EXPECT_EQ(message(metadata().get_f64("u32")), "key u32: is a u32, a float is needed");
  EXPECT_EQ(message(metadata().get_bool("u8")), "key u8: is a u8, a bool is needed");
  EXPECT_EQ(message(metadata().get_string("texts")),
            "key texts: is an array of string, a string is needed");
  EXPECT_EQ(message(metadata().get_strings("ints")),
            "key ints: is an array of i32, an array of string is needed");
  EXPECT_EQ(message(metadata().get_strings("text")),
            "key text: is a string, an array of string is needed");
  EXPECT_EQ(message(metadata().get_ints("floats")),
            "key floats: is an array of f32, an array of integers is needed");
  EXPECT_EQ(message(metadata().get_floats("ints")),
            "key ints: is an array of i32, an array of floats is needed");
  EXPECT_EQ(message(metadata().get_bools("none")),
            "key none: is an array of u8, an array of bool is needed");
}

TEST(Metadata, ArrayTooLongToCopyIsRefused) {
  Metadata metadata;
  const MetaArray array{MetaType::kU8, (std::uint64_t{1} << 24) + 1, {}};
  metadata.set("long", {MetaType::kArray, array});
  EXPECT_EQ(message(metadata.get_ints("long")), "key long: 16777217 elements, at most 16777216");
}

}  // namespace
}  // namespace cicada::formats
