#include "cicada/ipc/codec.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cicada/ipc/messages_for_test.h"

namespace cicada::ipc {
namespace {

using Bytes = std::vector<std::byte>;

template <typename Message>
Bytes encoded(const Message& message) {
  Bytes out;
  EXPECT_TRUE(encode(message, out));
  return out;
}

std::span<const std::byte> payload_of(const Bytes& frame) {
  return std::span(frame).subspan(kLengthBytes);
}

Bytes bytes_of(const std::vector<int>& values) {
  Bytes bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

template <typename Message>
void expect_corrupt(std::span<const std::byte> payload, const std::string& what) {
  const auto message = decode<Message>(payload);
  ASSERT_FALSE(message) << what;
  EXPECT_EQ(message.error().code(), Code::kCorrupt);
  EXPECT_NE(message.error().message().find(what), std::string::npos) << message.error().message();
}

template <typename Message>
void expect_round_trips(const std::vector<Message>& examples) {
  for (const Message& example : examples) {
    const Bytes frame = encoded(example);
    std::uint32_t length = 0;
    std::memcpy(&length, frame.data(), kLengthBytes);
    EXPECT_EQ(length, frame.size() - kLengthBytes);
    const auto message = decode<Message>(payload_of(frame));
    ASSERT_TRUE(message) << message.error().to_string();
    EXPECT_EQ(*message, example) << "kind " << example.index();
    EXPECT_EQ(encoded(*message), frame);
  }
}

template <typename Message>
void expect_truncations_are_corrupt(const std::vector<Message>& examples) {
  for (const Message& example : examples) {
    const Bytes frame = encoded(example);
    const auto payload = payload_of(frame);
    for (std::size_t size = 0; size < payload.size(); ++size) {
      // A copy, so that a sanitizer sees a read beyond it.
      const Bytes part(payload.begin(), payload.begin() + static_cast<std::ptrdiff_t>(size));
      const auto message = decode<Message>(part);
      ASSERT_FALSE(message) << "kind " << example.index() << " at " << size;
      EXPECT_EQ(message.error().code(), Code::kCorrupt);
    }
    Bytes longer(payload.begin(), payload.end());
    longer.push_back(std::byte{0});
    expect_corrupt<Message>(longer, "bytes follow");
  }
}

TEST(Codec, EveryMessageArrivesAsItWas) {
  expect_round_trips(to_engine_examples());
  expect_round_trips(to_front_examples());
}

TEST(Codec, ExamplesHoldEveryKind) {
  std::vector<bool> engine(std::variant_size_v<messages::ToEngine>);
  for (const auto& example : to_engine_examples()) engine[example.index()] = true;
  EXPECT_EQ(engine, std::vector<bool>(engine.size(), true));
  std::vector<bool> front(std::variant_size_v<messages::ToFront>);
  for (const auto& example : to_front_examples()) front[example.index()] = true;
  EXPECT_EQ(front, std::vector<bool>(front.size(), true));
}

TEST(Codec, TruncationAtEveryByteAndBytesBehindAreCorrupt) {
  expect_truncations_are_corrupt(to_engine_examples());
  expect_truncations_are_corrupt(to_front_examples());
}

// The layout of docs/formats/ipc.md, byte by byte.
TEST(Codec, BytesAreThoseOfTheDocument) {
  EXPECT_EQ(encoded(messages::ToEngine(messages::Pause{0x0102030405060708, true})),
            bytes_of({11, 0, 0, 0, 1, 3, 8, 7, 6, 5, 4, 3, 2, 1, 1}));
  EXPECT_EQ(encoded(messages::ToFront(messages::Failed{1, Code::kCorrupt, "no"})),
            bytes_of({17, 0, 0, 0, 1, 69, 1, 0, 0, 0, 0, 0, 0, 0, 2, 2, 0, 0, 0, 'n', 'o'}));
}

TEST(Codec, FramesAreAppended) {
  Bytes out = encoded(messages::ToEngine(messages::Cancel{1}));
  const Bytes second = encoded(messages::ToEngine(messages::Cancel{2}));
  const std::size_t first_size = out.size();
  ASSERT_TRUE(encode(messages::ToEngine(messages::Cancel{2}), out));
  EXPECT_EQ(Bytes(out.begin() + static_cast<std::ptrdiff_t>(first_size), out.end()), second);
}

TEST(Codec, OtherVersionsAndKindsAreCorrupt) {
  Bytes frame = encoded(messages::ToEngine(messages::Cancel{1}));
  frame[kLengthBytes] = std::byte{2};
  expect_corrupt<messages::ToEngine>(payload_of(frame), "version 2");
  frame[kLengthBytes] = std::byte{kVersion};
  for (const int kind : {0, 4, 64, 65, 255}) {
    frame[kLengthBytes + 1] = static_cast<std::byte>(kind);
    expect_corrupt<messages::ToEngine>(payload_of(frame), "kind " + std::to_string(kind));
  }
  for (const int kind : {0, 1, 64, 72, 255}) {
    frame[kLengthBytes + 1] = static_cast<std::byte>(kind);
    expect_corrupt<messages::ToFront>(payload_of(frame), "kind " + std::to_string(kind));
  }
}

TEST(Codec, ValuesThatAFieldCannotHaveAreCorrupt) {
  Bytes pause = encoded(messages::ToEngine(messages::Pause{1, true}));
  pause.back() = std::byte{2};
  expect_corrupt<messages::ToEngine>(payload_of(pause), "truth value");
  Bytes finished = encoded(messages::ToFront(messages::Finished{}));
  finished[kLengthBytes + 2 + 8] = std::byte{3};
  expect_corrupt<messages::ToFront>(payload_of(finished), "beyond the last");
  Bytes failed = encoded(messages::ToFront(messages::Failed{}));
  failed[kLengthBytes + 2 + 8] = std::byte{11};
  expect_corrupt<messages::ToFront>(payload_of(failed), "beyond the last");
}

// Such a count must be refused before memory is taken for it.
TEST(Codec, CountsBeyondTheMessageAreCorrupt) {
  const std::size_t prompt_count = kLengthBytes + 2 + 8;
  Bytes submit = encoded(messages::ToEngine(messages::Submit{}));
  for (const int byte : {1, 255}) {
    for (std::size_t i = 0; i < 4; ++i) submit[prompt_count + i] = static_cast<std::byte>(byte);
    expect_corrupt<messages::ToEngine>(payload_of(submit), "longer than the message");
  }
  Bytes hello = encoded(messages::ToFront(messages::Hello{}));
  hello[kLengthBytes + 2 + 3] = std::byte{255};  // of the first text
  expect_corrupt<messages::ToFront>(payload_of(hello), "longer than the message");
}

TEST(Codec, TooManyTextsAreCorrupt) {
  messages::Hello hello;
  hello.screen.resize(kMaxTexts);
  Bytes frame = encoded(messages::ToFront(hello));
  ASSERT_TRUE(decode<messages::ToFront>(payload_of(frame)));
  const std::size_t count_at = frame.size() - 4 * kMaxTexts - 4;
  const std::uint32_t count = kMaxTexts + 1;
  std::memcpy(frame.data() + count_at, &count, 4);
  frame.resize(frame.size() + 4);
  expect_corrupt<messages::ToFront>(payload_of(frame), "longer than the message");
}

template <typename Message>
void expect_not_sent(const Message& message) {
  Bytes out = bytes_of({1, 2, 3});
  const auto result = encode(message, out);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::kOutOfCapacity);
  EXPECT_EQ(out, bytes_of({1, 2, 3}));
}

TEST(Codec, TooManyTextsAreNotSent) {
  messages::Hello hello;
  hello.screen.resize(kMaxTexts + 1);
  expect_not_sent(messages::ToFront(hello));
}

TEST(Codec, TooLongListsAreNotSent) {
  messages::Submit submit;
  submit.prompt.resize(kMaxPayloadBytes / 4);  // and there are other fields
  expect_not_sent(messages::ToEngine(std::move(submit)));
}

TEST(Codec, TooLongTextsAreNotSent) {
  expect_not_sent(
      messages::ToFront(messages::Failed{1, Code::kIo, std::string(kMaxPayloadBytes, 'x')}));
}

}  // namespace
}  // namespace cicada::ipc
