#include "cicada/platform/file_time.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "cicada/platform/test_folder.h"

namespace cicada::platform {
namespace {

TEST(FileVersion, IsOfTheFileAndNotOfItsName) {
  const TestFolder folder;
  const std::string path = folder.path() + "/model";
  const std::string other = folder.path() + "/other";
  EXPECT_EQ(file_version(path), "none");
  folder.write("model", "one");
  folder.write("other", "two");
  const std::string version = file_version(path);
  EXPECT_EQ(file_version(path), version);
  EXPECT_NE(file_version(other), version);
  std::filesystem::rename(path, path + ".away");
  EXPECT_EQ(file_version(path), "none");
  std::filesystem::rename(path + ".away", path);
  EXPECT_EQ(file_version(path), version);
  std::filesystem::rename(other, path);
  EXPECT_NE(file_version(path), version);
}

TEST(FileVersion, ChangesWithTheBytes) {
  const TestFolder folder;
  const std::string path = folder.path() + "/model";
  folder.write("model", "one");
  const std::string version = file_version(path);
  folder.write("model", "longer");
  EXPECT_NE(file_version(path), version);
}

}  // namespace
}  // namespace cicada::platform
