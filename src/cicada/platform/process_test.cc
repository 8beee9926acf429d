#include "cicada/platform/process.h"

#include <gtest/gtest.h>

#include <chrono>

#include "cicada/platform/env.h"

namespace cicada::platform {
namespace {

ProcessOptions shell(const std::string& script) {
  ProcessOptions options;
  options.argv = {"/bin/sh", "-c", script};
  return options;
}

TEST(Process, OutputOfBothStreamsAndStatusComeBack) {
  const auto result = run_process(shell("echo out; echo err >&2; exit 7"));
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->exit_status, 7);
  EXPECT_EQ(result->output, "out\nerr\n");
}

TEST(Process, ArgumentsArePassedAsTheyAre) {
  ProcessOptions options;
  options.argv = {"printf", "%s|", "a b", "$(exit 1)", "", "*"};
  const auto result = run_process(options);
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_EQ(result->output, "a b|$(exit 1)||*|");
}

TEST(Process, StandardInputIsEmpty) {
  const auto result = run_process(shell("read line || echo none"));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->output, "none\n");
}

TEST(Process, EnvironmentIsOursWithTheChanges) {
  ProcessOptions options = shell("echo \"$CICADA_PROCESS_TEST,${PATH:+path},$HOME\"");
  options.environment["CICADA_PROCESS_TEST"] = "x=y z";
  options.environment["HOME"] = "/nowhere";
  const auto result = run_process(options);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->output, "x=y z,path,/nowhere\n");
}

TEST(Process, UnknownProgramIsNotFoundByName) {
  ProcessOptions options;
  options.argv = {"cicada-no-such-program"};
  const auto result = run_process(options);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::kNotFound);
  EXPECT_NE(result.error().message().find("cicada-no-such-program"), std::string::npos);
}

TEST(Process, ProgramThatCannotBeExecutedIsAnError) {
  ProcessOptions options;
  options.argv = {"/etc/passwd"};
  const auto result = run_process(options);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::kIo);
}

TEST(Process, PathOfTheOptionsDecidesWhatRuns) {
  ProcessOptions options;
  options.argv = {"sh", "-c", "echo found"};
  options.environment["PATH"] = "/nowhere";
  EXPECT_FALSE(run_process(options));
  options.environment["PATH"] = "/nowhere:/bin";
  EXPECT_TRUE(run_process(options));
}

TEST(Process, LongOutputKeepsItsEnd) {
  ProcessOptions options = shell("i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done");
  options.max_output_bytes = 10;
  const auto result = run_process(options);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->output, "line 1999\n");
}

TEST(Process, DeathBySignalIsReadable) {
  const auto result = run_process(shell("kill -9 $$"));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->exit_status, 128 + 9);
}

TEST(Process, CancellationEndsTheWholeGroup) {
  ProcessOptions options = shell("sleep 30 & sleep 30");
  options.cancelled = [] { return true; };
  const auto begin = std::chrono::steady_clock::now();
  const auto result = run_process(options);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::kCancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST(Process, DeafProgramIsKilledAfterTheGrace) {
  ProcessOptions options = shell("trap '' TERM; echo ready; while :; do sleep 30; done");
  options.grace = std::chrono::milliseconds(20);
  options.cancelled = [] { return true; };
  const auto result = run_process(options);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::kCancelled);
}

TEST(Process, BackgroundChildDoesNotHoldUpTheEnd) {
  const auto begin = std::chrono::steady_clock::now();
  const auto result = run_process(shell("sleep 3 & echo done"));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->output, "done\n");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

TEST(Environment, UnsetAndEmptyAreDifferent) {
  EXPECT_FALSE(environment_variable("CICADA_NO_SUCH_VARIABLE"));
  EXPECT_TRUE(environment_variable("PATH"));
}

}  // namespace
}  // namespace cicada::platform
