#include "cicada/formats/verify.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cicada/formats/gguf_test_builder.h"

namespace cicada::formats {
namespace {

// Of the file with the three letters "abc" (FIPS 180-4).
constexpr std::string_view kAbc =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

std::vector<std::string> problems(std::string_view bytes, const VerifyOptions& options = {}) {
  const TempFile file("verify.gguf", bytes);
  const auto report = verify(file.path(), options);
  EXPECT_TRUE(report) << report.error().to_string();
  return report ? report->problems : std::vector<std::string>();
}

TEST(Verify, GoodFileHasNoProblems) {
  EXPECT_TRUE(problems(GgufBuilder().tensor_f32("a", {2}, {1.0F, -0.0F}).build()).empty());
}

TEST(Verify, NanAndInfinityAreCountedWithThePlaceOfTheFirst) {
  const auto found = problems(GgufBuilder()
                                  .tensor_f32("fine", {1}, {1.0F})
                                  .tensor_f32("bad", {4}, {1.0F, NAN, HUGE_VALF, -NAN})
                                  .build());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0], "tensor bad: 2 NaN and 1 infinite values of 4, the first at element 1");
}

TEST(Verify, ScalesOfBlocksAreSeen) {
  std::string blocks(2 * 34, '\0');
  blocks[34] = '\x00';
  blocks[35] = '\x7c';  // the second block's scale is infinite
  blocks[36] = '\x01';
  const auto found = problems(GgufBuilder().tensor("q", {64}, 8, blocks).build());
  ASSERT_EQ(found.size(), 1U);
  // Infinity times 1 is infinite, times 0 is NaN.
  EXPECT_EQ(found[0], "tensor q: 31 NaN and 1 infinite values of 64, the first at element 32");
}

TEST(Verify, BrokenContainerIsAProblem) {
  const std::string whole = GgufBuilder().tensor_f32("a", {8}, std::vector<float>(8)).build();
  const auto found = problems(whole.substr(0, whole.size() - 1));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(has(found[0], "tensor a: 32 bytes at byte"));
  EXPECT_EQ(problems("not a model").size(), 1U);
}

TEST(Verify, BytesBehindTheLastTensor) {
  const auto found = problems(GgufBuilder().tensor_f32("a", {1}, {1.0F}).build() + "xyz");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0], "3 bytes behind the last tensor belong to nothing");
}

TEST(Verify, ManyBadTensorsAreCountedNotListed) {
  GgufBuilder builder;
  for (int i = 0; i < 150; ++i) builder.tensor_f32(fmt::format("t{}", i), {1}, {NAN});
  const auto found = problems(builder.build());
  ASSERT_EQ(found.size(), 101U);
  EXPECT_EQ(found.back(), "50 more tensors with NaN or infinite values");
}

TEST(Verify, Digest) {
  const TempFile file("verify_abc", "abc");
  VerifyOptions options;
  options.sha256 = std::string(kAbc);
  options.sha256->front() = 'B';  // upper case is accepted
  auto report = verify(file.path(), options);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->sha256, kAbc);
  EXPECT_EQ(report->problems.size(), 1U);  // it is no model file
  options.sha256 = std::string(64, '0');
  report = verify(file.path(), options);
  ASSERT_TRUE(report);
  ASSERT_EQ(report->problems.size(), 2U);
  EXPECT_TRUE(has(report->problems[1], "SHA-256 is ba7816bf"));
  EXPECT_FALSE(report->ok());
}

TEST(Verify, WhatIsNoDigestIsRefused) {
  for (const std::string& text :
       {std::string(), std::string("abc"), std::string(63, 'a'), std::string(65, 'a'),
        std::string(63, 'a') + "g", std::string(63, 'a') + " "}) {
    EXPECT_EQ(parse_sha256(text).error().code(), Code::kInvalidArgument) << text;
    const TempFile file("verify_digest", "abc");
    VerifyOptions options;
    options.sha256 = text;
    EXPECT_FALSE(verify(file.path(), options));
  }
}

TEST(Verify, MissingFileIsAnError) {
  EXPECT_EQ(verify("/nonexistent/model.gguf", {}).error().code(), Code::kNotFound);
}

TEST(Verify, ProgressCanStopBothPasses) {
  const TempFile file("verify_stop", GgufBuilder().tensor_f32("a", {1}, {1.0F}).build());
  VerifyOptions options;
  options.sha256 = std::string(64, '0');
  for (const int stop_at : {1, 2}) {
    int calls = 0;
    options.progress = [&](std::uint64_t done, std::uint64_t total) {
      EXPECT_LE(done, total);
      return ++calls < stop_at;
    };
    EXPECT_EQ(verify(file.path(), options).error().code(), Code::kCancelled);
    EXPECT_EQ(calls, stop_at);
  }
}

TEST(Sha256Sums, FindsTheLineOfAFile) {
  const std::string a(64, 'a');
  const std::string b(64, 'B');
  const std::string sums = a + "  dir/one.gguf\r\n\n" + b + " *two.gguf\n";
  EXPECT_EQ(find_sha256(sums, "/somewhere/one.gguf").value(), a);
  EXPECT_EQ(find_sha256(sums, "two.gguf").value(), std::string(64, 'b'));
  EXPECT_EQ(find_sha256(sums, "three.gguf").error().code(), Code::kNotFound);
}

TEST(Sha256Sums, BrokenLinesAreNamed) {
  const std::string a(64, 'a');
  for (const std::string& line :
       {std::string("hello"), a, a + "  ", a + " x", std::string(64, 'z') + "  x"}) {
    const auto found = find_sha256(a + "  other\n" + line + "\n", "x");
    ASSERT_FALSE(found) << line;
    EXPECT_EQ(found.error().code(), Code::kInvalidArgument);
    EXPECT_TRUE(has(found.error().to_string(), "line 2"));
  }
}

}  // namespace
}  // namespace cicada::formats
