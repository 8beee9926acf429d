#include "cicada/platform/lock_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

namespace cicada::platform {
namespace {

std::string lock_path(const char* name) {
  return testing::TempDir() + "cicada-lock-" + name + "-" + std::to_string(::getpid());
}

TEST(LockFile, SecondHolderWaitsForTheFirst) {
  const std::string path = lock_path("second");
  auto first = LockFile::acquire(path, {}, {});
  ASSERT_TRUE(first) << first.error().to_string();
  std::optional<LockFile> held(std::move(*first));
  int told = 0;
  const auto second = LockFile::acquire(path, {}, [&] {
    ++told;
    held.reset();
  });
  EXPECT_TRUE(second);
  EXPECT_EQ(told, 1);
  std::filesystem::remove(path);
}

TEST(LockFile, WaitingCanBeCancelled) {
  const std::string path = lock_path("cancel");
  const auto first = LockFile::acquire(path, {}, {});
  ASSERT_TRUE(first);
  const auto second = LockFile::acquire(path, [] { return true; }, {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Code::kCancelled);
  std::filesystem::remove(path);
}

TEST(LockFile, PathThatCannotBeMadeIsAnError) {
  const auto lock = LockFile::acquire("/nowhere/at/all/lock", {}, {});
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().code(), Code::kIo);
}

}  // namespace
}  // namespace cicada::platform
