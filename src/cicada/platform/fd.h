// An open descriptor that closes itself.
// Threads: one at a time changes it; get() from several while nobody does.
#pragma once

#include <unistd.h>

#include <utility>

namespace cicada::platform {

class Fd {
 public:
  Fd() = default;
  // Takes ownership; -1: none.
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { close(); }

  // Borrowed: valid until close() and destruction; -1: none.
  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

}  // namespace cicada::platform
