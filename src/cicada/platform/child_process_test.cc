#include "cicada/platform/child_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "cicada/platform/pipe.h"

namespace cicada::platform {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kLong{5000};

std::unique_ptr<ChildProcess> start_shell(const std::string& script, ChildOptions options = {}) {
  options.argv = {"/bin/sh", "-c", script};
  auto child = ChildProcess::start(options);
  if (!child) {
    ADD_FAILURE() << child.error().to_string();
    return nullptr;
  }
  return std::move(*child);
}

// What a script writes into the descriptor that it is given as number 3.
std::string written_by(const std::string& script, ChildOptions options = {}) {
  auto pipe = make_pipe();
  EXPECT_TRUE(pipe);
  options.inherited_fd = pipe->write_end.get();
  const auto child = start_shell(script, options);
  pipe->write_end.close();
  std::string text;
  std::array<char, 256> buffer{};
  while (true) {
    const ssize_t got = ::read(pipe->read_end.get(), buffer.data(), buffer.size());
    if (got <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

TEST(ChildProcess, StatusOfItsEndCanBeAskedAgain) {
  const auto child = start_shell("exit 7");
  EXPECT_EQ(child->wait_for(kLong), 7);
  EXPECT_EQ(child->wait_for(milliseconds(0)), 7);
}

TEST(ChildProcess, WaitingEndsWhenTheTimeIsOver) {
  const auto child = start_shell("exec sleep 30");
  const auto begin = Clock::now();
  EXPECT_FALSE(child->wait_for(milliseconds(0)));
  EXPECT_FALSE(child->wait_for(milliseconds(20)));
  EXPECT_GE(Clock::now() - begin, milliseconds(20));
  EXPECT_LT(Clock::now() - begin, kLong);
}

TEST(ChildProcess, DeathBySignalIsReadable) {
  const auto child = start_shell("exec sleep 30");
  child->kill(SIGKILL);
  EXPECT_EQ(child->wait_for(kLong), 128 + SIGKILL);
  child->kill(SIGKILL);  // of nobody: its number may be another's by now
}

TEST(ChildProcess, DestructorEndsAndReapsIt) {
  auto child = start_shell("trap '' TERM INT; exec sleep 30");
  const int pid = child->pid();
  EXPECT_EQ(::kill(pid, 0), 0);
  child.reset();
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(ChildProcess, DescriptorIsGivenAsNumber3) {
  EXPECT_EQ(written_by("echo hello >&3"), "hello\n");
}

TEST(ChildProcess, EnvironmentIsOursWithTheChanges) {
  ChildOptions options;
  options.environment["CICADA_CHILD_TEST"] = "x=y z";
  EXPECT_EQ(written_by("echo \"$CICADA_CHILD_TEST,${PATH:+path}\" >&3", options), "x=y z,path\n");
}

TEST(ChildProcess, StandardInputIsEmpty) {
  EXPECT_EQ(written_by("read line || echo none >&3"), "none\n");
}

// The front's connections must close when the front closes them, whoever opened them.
TEST(ChildProcess, NoOtherDescriptorIsInherited) {
  const Fd high(::fcntl(STDERR_FILENO, F_DUPFD, 20));  // not marked to close on exec
  ASSERT_TRUE(high.is_open());
  // The folder itself is open while it is listed, and no more when the names are looked at.
  const std::string script =
      "for f in /proc/$$/fd/*; do [ -e $f ] && [ ${f##*/} -gt 3 ] && echo ${f##*/} >&3; done; "
      "echo end >&3";
  EXPECT_EQ(written_by(script), "end\n");
}

TEST(ChildProcess, DiesWithItsParent) {
  auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  const pid_t parent = ::fork();
  if (parent == 0) {
    ChildOptions options;
    options.argv = {"/bin/sleep", "30"};
    options.inherited_fd = pipe->write_end.get();
    const auto child = ChildProcess::start(options);
    ::_exit(child ? 0 : 1);  // without destructors, as a crash would
  }
  pipe->write_end.close();
  char byte = 0;
  const auto begin = Clock::now();
  // Ends when the last process that holds the other end is gone.
  EXPECT_EQ(::read(pipe->read_end.get(), &byte, 1), 0);
  EXPECT_LT(Clock::now() - begin, kLong);
  int status = -1;
  ASSERT_EQ(::waitpid(parent, &status, 0), parent);
  EXPECT_EQ(exit_status(status), 0);
}

TEST(ChildProcess, UnknownProgramIsNotFoundByName) {
  ChildOptions options;
  options.argv = {"cicada-no-such-program"};
  const auto child = ChildProcess::start(options);
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().code(), Code::kNotFound);
  EXPECT_NE(child.error().message().find("cicada-no-such-program"), std::string::npos);
}

TEST(ChildProcess, ProgramThatCannotBeExecutedIsAnError) {
  ChildOptions options;
  options.argv = {"/etc/passwd"};
  const auto child = ChildProcess::start(options);
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().code(), Code::kIo);
}

TEST(ExecutablePath, IsThisProgram) {
  const auto path = executable_path();
  ASSERT_TRUE(path) << path.error().to_string();
  std::error_code error;
  EXPECT_TRUE(std::filesystem::equivalent(*path, "/proc/self/exe", error));
  EXPECT_NE(*path, "/proc/self/exe");
}

}  // namespace
}  // namespace cicada::platform
