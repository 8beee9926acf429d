// A cursor over the bytes of a file that never steps outside them.
// Lifetime: borrows the bytes. Threads: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "cicada/base/result.h"

namespace cicada::formats {

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint64_t position() const { return position_; }
  std::uint64_t remaining() const { return bytes_.size() - position_; }

  // A little-endian number. Errors: kCorrupt names `what` and where the file ends.
  template <typename T>
    requires std::is_arithmetic_v<T>
  Result<T> read(std::string_view what) {
    if (remaining() < sizeof(T)) {
      return fail(Code::kCorrupt, "{}: {} bytes are needed at byte {}, the file has {} left", what,
                  sizeof(T), position_, remaining());
    }
    T value{};
    std::memcpy(&value, bytes_.data() + position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }

  // The next `size_bytes` bytes. Errors: kCorrupt as above.
  Result<std::span<const std::byte>> take(std::uint64_t size_bytes, std::string_view what) {
    if (size_bytes > remaining()) {
      return fail(Code::kCorrupt, "{}: {} bytes are claimed at byte {}, the file has {} left", what,
                  size_bytes, position_, remaining());
    }
    const auto taken = bytes_.subspan(position_, static_cast<std::size_t>(size_bytes));
    position_ += taken.size();
    return taken;
  }

  // A string: u64 length, then that many bytes. Errors: kCorrupt when longer than `max_bytes` or
  // than the file.
  Result<std::string_view> read_string(std::uint64_t max_bytes, std::string_view what) {
    CICADA_ASSIGN(const std::uint64_t length, read<std::uint64_t>(what));
    if (length > max_bytes && length <= remaining()) {
      return fail(Code::kCorrupt, "{}: {} bytes long, at most {}", what, length, max_bytes);
    }
    CICADA_ASSIGN(const auto taken, take(length, what));
    return std::string_view(reinterpret_cast<const char*>(taken.data()), taken.size());
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t position_ = 0;
};

}  // namespace cicada::formats
