#include "cicada/formats/content_id.h"

#include <gtest/gtest.h>

#include "cicada/formats/gguf_test_builder.h"
#include "cicada/formats/safetensors_test_builder.h"

namespace cicada::formats {
namespace {

std::string id_of(const ModelFile& file, std::size_t workers = 2) {
  platform::ThreadPool pool(workers);
  const auto id = content_id(file, pool);
  EXPECT_TRUE(id.has_value());
  return id.value_or("");
}

std::string id_of_bytes(const std::string& bytes, std::size_t workers = 2) {
  const auto file = open_bytes(bytes);
  EXPECT_TRUE(file.has_value()) << file.error().to_string();
  return id_of(*file, workers);
}

TEST(ContentId, DependsOnEveryPieceOfTheFileAndNotOnTheWorkers) {
  // More than two pieces of 1 MiB.
  std::string bytes = GgufBuilder()
                          .key_string("general.architecture", "llama")
                          .tensor_f32("t", {600000}, std::vector<float>(600000, 1.0F))
                          .build();
  const std::string id = id_of_bytes(bytes);
  EXPECT_EQ(id.size(), 64U);
  EXPECT_EQ(id_of_bytes(bytes, 1), id);
  EXPECT_EQ(id_of_bytes(bytes, 5), id);
  for (const std::size_t from_end : {1U, 1200000U, 2300000U}) {
    char& byte = bytes[bytes.size() - from_end];
    byte = static_cast<char>(byte ^ 1);
    EXPECT_NE(id_of_bytes(bytes), id) << from_end;
    byte = static_cast<char>(byte ^ 1);
  }
  EXPECT_EQ(id_of_bytes(bytes), id);
}

TEST(ContentId, PiecesInAnotherOrderAreAnotherContent) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  std::vector<float> values(3 * kPiece / sizeof(float), 1.0F);
  const auto with_seven_at = [&](std::size_t index) {
    std::vector<float> changed = values;
    changed[index] = 7.0F;
    return id_of_bytes(GgufBuilder().tensor_f32("t", {values.size()}, changed).build());
  };
  EXPECT_NE(with_seven_at(100), with_seven_at(100 + kPiece / sizeof(float)));
}

// The weights' file is the same; what they mean stands beside it.
TEST(ContentId, DependsOnWhatConfigJsonSays) {
  const TempFolder folder("content_id");
  const std::string path =
      folder.put("model.safetensors",
                 SafetensorsBuilder().tensor_f32("model.norm.weight", "[2]", {1.0F, 2.0F}).build());
  const auto id_with = [&](std::string config) {
    folder.put("config.json", config);
    const auto file = ModelFile::open(path);
    EXPECT_TRUE(file.has_value()) << file.error().to_string();
    return id_of(*file);
  };
  const auto replaced = [](std::string_view what, std::string_view with) {
    std::string text(kSmallConfig);
    return text.replace(text.find(what), what.size(), with);
  };
  const std::string id = id_with(std::string(kSmallConfig));
  EXPECT_EQ(id_with(std::string(kSmallConfig)), id);
  EXPECT_NE(id_with(replaced("500000", "500001")), id);    // a float
  EXPECT_NE(id_with(replaced("1e-05", "1e-06")), id);      // a small one
  EXPECT_NE(id_with(replaced("\": 16,", "\": 17,")), id);  // a count
}

}  // namespace
}  // namespace cicada::formats
