#include "cicada/ipc/frame_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "cicada/ipc/codec.h"

namespace cicada::ipc {
namespace {

std::string frame(const std::string& payload) {
  std::string text(kLengthBytes, '\0');
  const auto length = static_cast<std::uint32_t>(payload.size());
  std::memcpy(text.data(), &length, kLengthBytes);
  return text + payload;
}

// The payloads that come out when `stream` goes in so many bytes at a time.
std::vector<std::string> payloads(FrameBuffer& buffer, const std::string& stream,
                                  std::size_t step) {
  std::vector<std::string> result;
  for (std::size_t at = 0; at < stream.size();) {
    const auto room = buffer.room();
    const std::size_t count = std::min({step, stream.size() - at, room.size()});
    std::memcpy(room.data(), stream.data() + at, count);
    buffer.add(count);
    at += count;
    while (true) {
      const auto payload = buffer.next();
      EXPECT_TRUE(payload);
      if (!payload || !*payload) break;
      const std::span<const std::byte> bytes = **payload;
      result.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    }
  }
  return result;
}

TEST(FrameBuffer, PayloadsComeOutHoweverTheStreamIsCut) {
  const std::vector<std::string> sent = {"", "a", "bc", std::string(300, 'x'), ""};
  std::string stream;
  for (const std::string& one : sent) stream += frame(one);
  for (std::size_t step = 1; step <= stream.size(); ++step) {
    FrameBuffer buffer;
    EXPECT_EQ(payloads(buffer, stream, step), sent) << step;
    EXPECT_TRUE(buffer.is_empty());
  }
}

TEST(FrameBuffer, PartOfAFrameIsNotEmpty) {
  FrameBuffer buffer;
  const std::string stream = frame("abc");
  EXPECT_TRUE(payloads(buffer, stream.substr(0, 2), 2).empty());
  EXPECT_FALSE(buffer.is_empty());
  EXPECT_TRUE(payloads(buffer, stream.substr(2, 4), 4).empty());
  EXPECT_FALSE(buffer.is_empty());
  EXPECT_EQ(payloads(buffer, stream.substr(6), 4), std::vector<std::string>{"abc"});
  EXPECT_TRUE(buffer.is_empty());
}

TEST(FrameBuffer, LongPayloadsGrowTheBufferAndShortOnesFollow) {
  FrameBuffer buffer;
  const std::string large(std::size_t{3} << 20, 'l');
  const std::vector<std::string> sent = {large, "s", "t"};
  EXPECT_EQ(payloads(buffer, frame(large) + frame("s") + frame("t"), 1U << 18), sent);
  EXPECT_LE(buffer.room().size(), std::size_t{1} << 20) << "memory of a long message is kept";
}

TEST(FrameBuffer, LengthTakesNoMemoryBeforeTheBytesAreThere) {
  FrameBuffer buffer;
  const auto most = static_cast<std::uint32_t>(kMaxPayloadBytes);
  std::memcpy(buffer.room().data(), &most, kLengthBytes);
  buffer.add(kLengthBytes);
  const auto payload = buffer.next();
  ASSERT_TRUE(payload);
  EXPECT_FALSE(*payload);
  EXPECT_LT(buffer.room().size(), std::size_t{1} << 20);
}

TEST(FrameBuffer, LengthBeyondTheLimitIsCorrupt) {
  FrameBuffer buffer;
  const auto more = static_cast<std::uint32_t>(kMaxPayloadBytes + 1);
  std::memcpy(buffer.room().data(), &more, kLengthBytes);
  buffer.add(kLengthBytes);
  const auto payload = buffer.next();
  ASSERT_FALSE(payload);
  EXPECT_EQ(payload.error().code(), Code::kCorrupt);
}

}  // namespace
}  // namespace cicada::ipc
