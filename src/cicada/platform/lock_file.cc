#include "cicada/platform/lock_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

namespace cicada::platform {
namespace {

constexpr std::chrono::milliseconds kRetryInterval{50};

}  // namespace

Result<LockFile> LockFile::acquire(const std::string& path, const std::function<bool()>& cancelled,
                                   const std::function<void()>& waiting) {
  LockFile lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (lock.fd_ < 0) {
    return fail(Code::kIo, "{}: cannot be opened: {}", path,
                std::generic_category().message(errno));
  }
  bool told = false;
  while (::flock(lock.fd_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) {
      return fail(Code::kIo, "{}: cannot be locked: {}", path,
                  std::generic_category().message(errno));
    }
    if (!told && waiting) waiting();
    told = true;
    if (cancelled && cancelled()) return fail(Code::kCancelled, "{}: stopped while waiting", path);
    std::this_thread::sleep_for(kRetryInterval);
  }
  return lock;
}

LockFile::LockFile(LockFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

LockFile::~LockFile() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace cicada::platform
