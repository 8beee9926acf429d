// Owned, zero-initialised memory, aligned to 64 bytes and backed by huge pages where that helps.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "cicada/base/result.h"

namespace cicada::tensor {

// Errors of create(): kOutOfMemory with the size asked for. Zeroed. Pages are first touched by
// whoever writes them. Movable, not copyable.
class Buffer {
 public:
  static Result<Buffer> create(std::size_t size_bytes);

  Buffer() = default;
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size_bytes() const { return size_; }

  // The memory as an array of T; T must divide the size.
  template <typename T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(data_), size_ / sizeof(T)};
  }
  template <typename T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data_), size_ / sizeof(T)};
  }

 private:
  Buffer(std::byte* data, std::size_t size) : data_(data), size_(size) {}

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace cicada::tensor
