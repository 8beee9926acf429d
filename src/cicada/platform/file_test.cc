#include "cicada/platform/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>

namespace cicada::platform {
namespace {

namespace fs = std::filesystem;
using Temporary = AtomicFileWriter::Temporary;

class FileTest : public testing::Test {
 protected:
  FileTest() { fs::create_directories(folder_); }
  ~FileTest() override { fs::remove_all(folder_); }

  std::string at(const std::string& name) const { return folder_ + "/" + name; }
  void put(const std::string& name, std::string_view text) const {
    std::ofstream(at(name)) << text;
  }
  std::string get(const std::string& name) const { return read_file(at(name), 1024).value_or("-"); }
  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      found.insert(entry.path().filename().string());
    }
    return found;
  }
  static Error error_of(const std::string& path) {
    const auto file = MappedFile::open(path);
    EXPECT_FALSE(file) << path;
    return file ? Error(Code::kInternal, "no error") : file.error();
  }

  std::string folder_ = testing::TempDir() + "/cicada_file_" + std::to_string(::getpid());
};

// Both kinds, since what the file system of the test allows is not known.
constexpr Temporary kKinds[] = {Temporary::kUnnamedWherePossible, Temporary::kNamed};

TEST_F(FileTest, AFileOfTheRightSizeIsReadIntoItsPieces) {
  put("f", "headbody");
  std::string head(4, ' ');
  std::string body(4, ' ');
  const auto read = [&](const std::string& name) {
    const std::span<std::byte> pieces[] = {std::as_writable_bytes(std::span(head)),
                                           std::as_writable_bytes(std::span(body))};
    return read_exactly(at(name), pieces);
  };
  ASSERT_TRUE(read("f"));
  EXPECT_EQ(head + "|" + body, "head|body");
  for (const std::string_view text : {"", "headbod", "headbody!"}) {
    put("f", text);
    const auto refused = read("f");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Code::kCorrupt);
    EXPECT_EQ(refused.error().message(),
              at("f") + fmt::format(": has {} bytes, 8 are expected", text.size()));
  }
  EXPECT_EQ(read("none").error().code(), Code::kNotFound);
  EXPECT_EQ(read("").error().code(), Code::kInvalidArgument);  // the folder
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_EQ(read("pipe").error().code(), Code::kInvalidArgument);
}

TEST_F(FileTest, AFileThatIsLeftToTheSystemIsInPlaceToo) {
  auto writer = AtomicFileWriter::create(at("f"));
  ASSERT_TRUE(writer && writer->write(std::string_view("text")));
  ASSERT_TRUE(writer->finish(AtomicFileWriter::Flush::kLeaveToSystem));
  EXPECT_EQ(get("f"), "text");
}

TEST_F(FileTest, NewFileAppearsInFinishAndReplacesTheOldOne) {
  for (const Temporary kind : kKinds) {
    fs::remove(at("f"));
    for (const std::string_view text : {"first", "second"}) {
      auto writer = AtomicFileWriter::create(at("f"), kind);
      ASSERT_TRUE(writer) << writer.error().to_string();
      ASSERT_TRUE(writer->write(text));
      EXPECT_EQ(get("f"), text == "first" ? "-" : "first");
      ASSERT_TRUE(writer->finish());
      EXPECT_EQ(get("f"), text);
      EXPECT_EQ(names(), std::set<std::string>{"f"});
    }
  }
}

TEST_F(FileTest, DroppedWriterLeavesNothing) {
  for (const Temporary kind : kKinds) {
    auto writer = AtomicFileWriter::create(at("f"), kind);
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->write("text"));
    { const AtomicFileWriter moved = std::move(*writer); }
    EXPECT_EQ(names(), std::set<std::string>{});
  }
}

TEST_F(FileTest, ProcessThatIsKilledLeavesNothing) {
  const int probe = ::open(folder_.c_str(), O_WRONLY | O_TMPFILE, 0600);
  if (probe < 0) GTEST_SKIP() << "the file system of " << folder_ << " has no unnamed files";
  ::close(probe);
  const pid_t child = ::fork();
  if (child == 0) {
    auto writer = AtomicFileWriter::create(at("f"));
    const bool wrote = writer && writer->write("text");
    ::kill(::getpid(), wrote ? SIGKILL : SIGTERM);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_EQ(names(), std::set<std::string>{});
}

TEST_F(FileTest, LeftOverOfAProcessOfTheSameNumberIsNoObstacle) {
  put("elsewhere", "keep");
  const std::string temporary = "f.partial-" + std::to_string(::getpid());
  for (const Temporary kind : kKinds) {
    fs::create_symlink("elsewhere", at(temporary));
    put("f", "old");
    auto writer = AtomicFileWriter::create(at("f"), kind);
    ASSERT_TRUE(writer);
    ASSERT_TRUE(writer->write("new"));
    ASSERT_TRUE(writer->finish());
    EXPECT_EQ(get("f"), "new");
    EXPECT_EQ(get("elsewhere"), "keep");
    EXPECT_EQ(names(), (std::set<std::string>{"elsewhere", "f"}));
  }
}

TEST_F(FileTest, WritingThroughLinksReplacesWhatTheyLeadTo) {
  fs::create_directories(at("d"));
  put("d/real", "old");
  fs::create_symlink("d/real", at("link"));
  fs::create_symlink(at("link"), at("link2"));
  fs::create_symlink("d/new", at("dangling"));
  for (const char* name : {"link2", "dangling"}) {
    auto writer = AtomicFileWriter::create(at(name));
    ASSERT_TRUE(writer) << writer.error().to_string();
    ASSERT_TRUE(writer->write(name));
    ASSERT_TRUE(writer->finish());
    EXPECT_TRUE(fs::is_symlink(at(name)));
  }
  EXPECT_EQ(get("d/real"), "link2");
  EXPECT_EQ(get("d/new"), "dangling");
}

TEST_F(FileTest, WhatIsNoFileIsNotReplaced) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  fs::create_symlink("/dev/null", at("device"));
  fs::create_symlink("loop", at("loop"));
  fs::create_directories(at("folder"));
  for (const auto& [name, part] :
       std::initializer_list<std::pair<std::string, std::string>>{{"pipe", "not a regular file"},
                                                                  {"device", "not a regular file"},
                                                                  {"folder", "is a directory"},
                                                                  {"loop", "symbolic links"}}) {
    const auto writer = AtomicFileWriter::create(at(name));
    ASSERT_FALSE(writer) << name;
    EXPECT_EQ(writer.error().code(), Code::kInvalidArgument) << name;
    EXPECT_NE(writer.error().to_string().find(part), std::string::npos) << name;
  }
  EXPECT_EQ(names(), (std::set<std::string>{"device", "folder", "loop", "pipe"}));
}

TEST_F(FileTest, OnlyWhatIsMissingIsCalledMissing) {
  put("f", "text");
  fs::create_symlink("loop", at("loop"));
  EXPECT_EQ(error_of(at("none")).code(), Code::kNotFound);
  EXPECT_EQ(error_of(at("none/x")).code(), Code::kNotFound);
  for (const auto& [name, words] : std::initializer_list<std::pair<std::string, std::string>>{
           {"loop", "Too many levels of symbolic links"}, {"f/x", "Not a directory"}}) {
    const Error error = error_of(at(name));
    EXPECT_EQ(error.code(), Code::kIo) << name;
    EXPECT_NE(error.to_string().find(words), std::string::npos) << error.to_string();
  }
}

TEST_F(FileTest, MappingWithoutAddressSpaceIsOutOfMemory) {
  put("f", "");
  std::error_code error;
  fs::resize_file(at("f"), std::uintmax_t{1} << 43, error);
  if (error) GTEST_SKIP() << "no sparse file of 8 TiB: " << error.message();
  // Room for what the test itself and a sanitizer need, yet not for the file.
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  ASSERT_GT(pages, 0U);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  const rlimit tight{pages * 4096 + (std::uint64_t{1} << 40), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &tight), 0);
  const auto file = MappedFile::open(at("f"));
  ::setrlimit(RLIMIT_AS, &before);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code(), Code::kOutOfMemory);
}

TEST_F(FileTest, SizeLimitOfATextHolds) {
  put("f", "12345");
  EXPECT_EQ(read_file(at("f"), 5).value(), "12345");
  ASSERT_FALSE(read_file(at("f"), 4));
  EXPECT_EQ(read_file(at("f"), 4).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(read_file(at("none"), 4).error().code(), Code::kNotFound);
}

// Sends SIGALRM every few milliseconds; without SA_RESTART, so that it interrupts system calls.
class Alarms {
 public:
  Alarms() {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    ::sigaction(SIGALRM, &action, &before_);
    const itimerval every{{0, 5000}, {0, 5000}};
    ::setitimer(ITIMER_REAL, &every, nullptr);
  }
  Alarms(const Alarms&) = delete;
  Alarms& operator=(const Alarms&) = delete;
  ~Alarms() {
    const itimerval never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
    ::sigaction(SIGALRM, &before_, nullptr);
  }

 private:
  struct sigaction before_ {};
};

TEST_F(FileTest, InterruptedReadingAsksWhetherToStop) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  for (const bool has_writer : {false, true}) {  // waits in open, in read
    const int writer = has_writer ? ::open(at("pipe").c_str(), O_RDWR | O_CLOEXEC) : -1;
    int asked = 0;
    Result<std::string> text;
    {
      const Alarms alarms;
      text = read_file(at("pipe"), 100, [&asked] { return ++asked == 5; });
    }
    if (writer >= 0) ::close(writer);
    ASSERT_FALSE(text);
    EXPECT_EQ(text.error().code(), Code::kCancelled);
    EXPECT_EQ(text.error().to_string(), "stopped");
    EXPECT_EQ(asked, 5);
  }
}

}  // namespace
}  // namespace cicada::platform
