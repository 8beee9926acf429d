// Fuzzes what a channel does with the bytes it receives: any stream is cut into payloads or
// refused, any payload is a message or an error, and a message has just the bytes that it came
// from.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "cicada/base/check.h"
#include "cicada/ipc/codec.h"
#include "cicada/ipc/frame_buffer.h"

namespace cicada::ipc {
namespace {

template <typename Message>
void decode_and_encode(std::span<const std::byte> payload) {
  const auto message = decode<Message>(payload);
  if (!message) {
    CICADA_CHECK(message.error().code() == Code::kCorrupt, "bytes are to blame");
    return;
  }
  std::vector<std::byte> frame;
  CICADA_CHECK(encode(*message, frame).has_value(), "what was received can be sent");
  CICADA_CHECK(std::ranges::equal(std::span(frame).subspan(kLengthBytes), payload),
               "a message has one encoding");
}

void decode_stream(std::span<const std::byte> stream) {
  FrameBuffer frames;
  while (!stream.empty()) {
    const auto room = frames.room();
    // Pieces of 1 to 256 bytes, as the stream itself says.
    const std::size_t piece = std::to_integer<std::size_t>(stream.front()) + 1;
    const std::size_t count = std::min({piece, stream.size(), room.size()});
    std::memcpy(room.data(), stream.data(), count);
    frames.add(count);
    stream = stream.subspan(count);
    while (true) {
      const auto next = frames.next();
      if (!next) return;
      const auto payload = *next;
      if (!payload) break;
      decode_and_encode<messages::ToEngine>(*payload);
      decode_and_encode<messages::ToFront>(*payload);
    }
  }
}

void fuzz_one(std::span<const std::byte> bytes) {
  decode_and_encode<messages::ToEngine>(bytes);
  decode_and_encode<messages::ToFront>(bytes);
  decode_stream(bytes);
}

}  // namespace
}  // namespace cicada::ipc

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  cicada::ipc::fuzz_one(std::as_bytes(std::span(data, size)));
  return 0;
}
