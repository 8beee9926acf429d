// Cuts a stream of bytes into payloads. Takes only as much memory as bytes have arrived, whatever a
// length says.
// Threads: values.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "cicada/base/result.h"

namespace cicada::ipc {

class FrameBuffer {
 public:
  // Where the next bytes go; valid until the next call. Never empty.
  std::span<std::byte> room();
  // So many of them are there now; at most room().size().
  void add(std::size_t num_bytes);

  // The next payload, valid until room(); nothing when more bytes are needed.
  // Errors: kCorrupt for a length above the limit, after which there is no next one.
  Result<std::optional<std::span<const std::byte>>> next();

  // Nothing is there, not even a part of a frame.
  bool is_empty() const { return begin_ == end_; }

 private:
  std::vector<std::byte> bytes_;
  std::size_t begin_ = 0;  // of what was not given out
  std::size_t end_ = 0;    // of what arrived
};

}  // namespace cicada::ipc
