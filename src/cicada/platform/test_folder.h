// For tests: a folder of its own that goes away with the object.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace cicada::platform {

class TestFolder {
 public:
  TestFolder() : path_(testing::TempDir() + "cicada-test-XXXXXX") {
    EXPECT_NE(::mkdtemp(path_.data()), nullptr);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  ~TestFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }

  const std::string& path() const { return path_; }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ + "/" + name, std::ios::binary) << text;
  }

  std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(path_ + "/" + name, std::ios::binary).rdbuf();
    return text.str();
  }

  // Names in a folder below, without those of lock files.
  std::set<std::string> names(const std::string& folder) const {
    std::set<std::string> result;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(path_ + "/" + folder, error)) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with(".lock-")) result.insert(name);
    }
    return result;
  }

 private:
  std::string path_;
};

}  // namespace cicada::platform
