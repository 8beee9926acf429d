#include "cicada/ipc/frame_buffer.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "cicada/base/check.h"
#include "cicada/ipc/codec.h"

namespace cicada::ipc {
namespace {

// Many small messages in one call of the system.
constexpr std::size_t kReadBytes = std::size_t{64} << 10;
// Kept from a large message for the next one.
constexpr std::size_t kMostKeptBytes = std::size_t{1} << 20;

}  // namespace

std::span<std::byte> FrameBuffer::room() {
  if (begin_ > 0) {
    std::memmove(bytes_.data(), bytes_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == 0 && bytes_.size() > kMostKeptBytes) bytes_ = {};
  // Doubled, so that a long message is moved few times.
  if (bytes_.size() - end_ < kReadBytes) bytes_.resize(std::max(2 * bytes_.size(), 2 * kReadBytes));
  return std::span(bytes_).subspan(end_);
}

void FrameBuffer::add(std::size_t num_bytes) {
  CICADA_CHECK(num_bytes <= bytes_.size() - end_, "no more bytes than there was room for");
  end_ += num_bytes;
}

Result<std::optional<std::span<const std::byte>>> FrameBuffer::next() {
  const auto arrived = std::span<const std::byte>(bytes_).subspan(begin_, end_ - begin_);
  if (arrived.size() < kLengthBytes) return std::nullopt;
  std::uint32_t length = 0;
  std::memcpy(&length, arrived.data(), kLengthBytes);
  if (length > kMaxPayloadBytes) {
    return fail(Code::kCorrupt, "a message of {} bytes, at most {}", length, kMaxPayloadBytes);
  }
  if (arrived.size() - kLengthBytes < length) return std::nullopt;
  begin_ += kLengthBytes + length;
  return arrived.subspan(kLengthBytes, length);
}

}  // namespace cicada::ipc
