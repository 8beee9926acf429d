// A lock between processes, held through a file.
// Threads: one thread only; two locks on one path exclude each other within a process too.
#pragma once

#include <functional>
#include <string>

#include "cicada/base/result.h"

namespace cicada::platform {

// Held from acquire() to destruction, and released by the system if the process dies. The file
// itself stays: removing it would let two holders in.
class LockFile {
 public:
  // Waits until nobody else holds the lock on `path` (created when missing). `waiting` is called
  // once if somebody does; `cancelled` is asked about 20 times a second. Both may be empty. Errors:
  // kIo, kCancelled.
  static Result<LockFile> acquire(const std::string& path, const std::function<bool()>& cancelled,
                                  const std::function<void()>& waiting);

  LockFile(LockFile&& other) noexcept;
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;
  LockFile& operator=(LockFile&&) = delete;
  ~LockFile();

 private:
  explicit LockFile(int fd) : fd_(fd) {}

  int fd_;
};

}  // namespace cicada::platform
