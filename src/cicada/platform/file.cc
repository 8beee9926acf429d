#include "cicada/platform/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace cicada::platform {
namespace {

std::string system_words(int number) { return std::generic_category().message(number); }

// An open descriptor that closes itself.
class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

tl::unexpected<Error> open_error(const std::string& path, int number) {
  if (number == ENOENT || number == ENOTDIR) {
    return fail(Code::kNotFound, "{}: no such file", path);
  }
  return fail(Code::kIo, "{}: cannot be opened: {}", path, system_words(number));
}

// The size of a regular file; anything else is refused by name.
Result<std::size_t> regular_file_size(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    return fail(Code::kIo, "{}: {}", path, system_words(errno));
  }
  if (S_ISDIR(info.st_mode)) {
    return fail(Code::kInvalidArgument, "{}: is a directory, a file is needed", path);
  }
  if (!S_ISREG(info.st_mode)) {
    return fail(Code::kInvalidArgument, "{}: is not a regular file", path);
  }
  return static_cast<std::size_t>(info.st_size);
}

void advise(const std::byte* data, std::size_t size, std::size_t offset, std::size_t length,
            int advice) {
  if (offset >= size) return;
  length = std::min(length, size - offset);
  const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t begin = (offset + page - 1) / page * page;
  const std::size_t end = (offset + length) / page * page;
  if (begin >= end) return;
  // madvise takes a non-const pointer but does not write through it.
  ::madvise(const_cast<std::byte*>(data + begin), end - begin, advice);
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) return open_error(path, errno);
  CICADA_ASSIGN(const std::size_t size, regular_file_size(fd.get(), path));
  if (size == 0) return MappedFile(path, nullptr, 0);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (data == MAP_FAILED) {
    return fail(Code::kIo, "{}: cannot be mapped: {}", path, system_words(errno));
  }
  return MappedFile(path, static_cast<const std::byte*>(data), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_bytes_);
}

void MappedFile::will_need(std::size_t offset_bytes, std::size_t size_bytes) const {
  advise(data_, size_bytes_, offset_bytes, size_bytes, MADV_WILLNEED);
}

void MappedFile::drop_pages(std::size_t offset_bytes, std::size_t size_bytes) const {
  advise(data_, size_bytes_, offset_bytes, size_bytes, MADV_DONTNEED);
}

Result<std::string> read_file(const std::string& path, std::uint64_t max_bytes) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return open_error(path, errno);
  std::string text;
  constexpr std::size_t kChunkBytes = std::size_t{1} << 18;
  while (true) {
    const std::size_t old_size = text.size();
    text.resize(old_size + kChunkBytes);
    const ssize_t got = ::read(fd.get(), text.data() + old_size, kChunkBytes);
    if (got < 0 && errno == EINTR) {
      text.resize(old_size);
      continue;
    }
    if (got < 0) return fail(Code::kIo, "{}: {}", path, system_words(errno));
    text.resize(old_size + static_cast<std::size_t>(got));
    if (got == 0) return text;
    if (text.size() > max_bytes) {
      return fail(Code::kInvalidArgument, "{}: larger than the {} bytes allowed here", path,
                  max_bytes);
    }
  }
}

Result<AtomicFileWriter> AtomicFileWriter::create(const std::string& path) {
  std::string temporary = path + ".partial-" + std::to_string(::getpid());
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return fail(Code::kIo, "{}: cannot be written: {}", path, system_words(errno));
  return AtomicFileWriter(path, std::move(temporary), fd);
}

AtomicFileWriter::AtomicFileWriter(AtomicFileWriter&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::exchange(other.fd_, -1)),
      position_(other.position_) {}

AtomicFileWriter::~AtomicFileWriter() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

Result<void> AtomicFileWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return fail(Code::kIo, "{}: writing failed: {}", path_, system_words(errno));
    bytes = bytes.subspan(static_cast<std::size_t>(put));
    position_ += static_cast<std::uint64_t>(put);
  }
  return {};
}

Result<void> AtomicFileWriter::write(std::string_view text) {
  return write(std::as_bytes(std::span(text)));
}

Result<void> AtomicFileWriter::finish() {
  if (::fsync(fd_) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return fail(Code::kIo, "{}: writing failed: {}", path_, system_words(errno));
  }
  ::close(std::exchange(fd_, -1));
  return {};
}

}  // namespace cicada::platform
