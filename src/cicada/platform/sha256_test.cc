#include "cicada/platform/sha256.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string_view>

namespace cicada::platform {
namespace {

// Digests of FIPS 180-4's examples.
constexpr std::string_view kEmpty =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr std::string_view kAbc =
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(Sha256, KnownDigests) {
  EXPECT_EQ(sha256_hex({}).value(), kEmpty);
  EXPECT_EQ(sha256_hex(bytes_of("abc")).value(), kAbc);
}

TEST(Sha256, PiecesGiveTheDigestOfTheWhole) {
  auto hash = Sha256::create();
  ASSERT_TRUE(hash);
  ASSERT_TRUE(hash->update(bytes_of("a")));
  ASSERT_TRUE(hash->update({}));
  ASSERT_TRUE(hash->update(bytes_of("bc")));
  EXPECT_EQ(hash->hex_digest().value(), kAbc);
}

TEST(Sha256, FileAndMissingFile) {
  const std::string path = testing::TempDir() + "/sha256_test_abc";
  std::ofstream(path) << "abc";
  EXPECT_EQ(sha256_file(path).value(), kAbc);
  EXPECT_EQ(sha256_file(path + ".missing").error().code(), Code::kNotFound);
}

TEST(Sha256, ProgressCanStop) {
  const auto stopped = sha256_hex(bytes_of("abc"), [](std::uint64_t done) {
    EXPECT_EQ(done, 3U);
    return false;
  });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code(), Code::kCancelled);
}

}  // namespace
}  // namespace cicada::platform
