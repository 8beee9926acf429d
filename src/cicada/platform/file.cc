#include "cicada/platform/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "cicada/platform/fd.h"
#include "cicada/platform/system_words.h"

namespace cicada::platform {
namespace {

constexpr mode_t kNewFileMode = 0644;

tl::unexpected<Error> open_error(const std::string& path, int number) {
  if (number == ENOENT) {
    return fail(Code::kNotFound, "{}: no such file", path);
  }
  return fail(Code::kIo, "{}: cannot be opened: {}", path, system_words(number));
}

Result<void> check_regular(mode_t mode, const std::string& path) {
  if (S_ISDIR(mode)) {
    return fail(Code::kInvalidArgument, "{}: is a directory, a file is needed", path);
  }
  if (!S_ISREG(mode)) {
    return fail(Code::kInvalidArgument, "{}: is not a regular file", path);
  }
  return {};
}

// The size of a regular file; anything else is refused by name.
Result<std::size_t> regular_file_size(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) {
    return fail(Code::kIo, "{}: {}", path, system_words(errno));
  }
  CICADA_TRY(check_regular(info.st_mode, path));
  return static_cast<std::size_t>(info.st_size);
}

tl::unexpected<Error> write_error(const std::string& path, int number) {
  const Code code = number == ELOOP ? Code::kInvalidArgument : Code::kIo;
  return fail(code, "{}: cannot be written: {}", path, system_words(number));
}

// The file that writing to `path` means: what its links lead to, there or not.
Result<std::string> behind_links(const std::string& path) {
  constexpr int kMaxLinks = 40;  // the kernel's own limit
  std::filesystem::path target = path;
  for (int links = 0; links <= kMaxLinks; ++links) {
    struct stat info {};
    if (::lstat(target.c_str(), &info) != 0) {
      if (errno == ENOENT) return target.string();
      return write_error(path, errno);
    }
    if (!S_ISLNK(info.st_mode)) {
      CICADA_TRY(check_regular(info.st_mode, path));
      return target.string();
    }
    std::error_code error;
    const std::filesystem::path next = std::filesystem::read_symlink(target, error);
    if (error) return write_error(path, error.value());
    target = target.parent_path() / next;
  }
  return write_error(path, ELOOP);
}

// The kernel's name for an open file, by which one that has no other can be given one.
std::string fd_path(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

// -1 where the file system, or a missing /proc, does not allow files that get their name later.
int open_unnamed(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const int fd =
      ::open(folder.empty() ? "." : folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, kNewFileMode);
  if (fd < 0 || ::access(fd_path(fd).c_str(), F_OK) == 0) return fd;
  ::close(fd);
  return -1;
}

int open_named(const std::string& path) {
  ::unlink(path.c_str());  // of a process of the same number that was killed
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kNewFileMode);
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
    return fail(errno == ENOMEM ? Code::kOutOfMemory : Code::kIo, "{}: cannot be mapped: {}", path,
                system_words(errno));
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

Result<std::string> read_file(const std::string& path, std::uint64_t max_bytes,
                              const std::function<bool()>& cancelled) {
  const auto is_cancelled = [&cancelled] { return cancelled && cancelled(); };
  // Opening a pipe waits for its other end, reading for bytes: a signal ends either.
  int number = -1;
  do {
    if (is_cancelled()) return fail(Code::kCancelled, "stopped");
    number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  } while (number < 0 && errno == EINTR);
  if (number < 0) return open_error(path, errno);
  const Fd fd(number);
  std::string text;
  constexpr std::size_t kChunkBytes = std::size_t{1} << 18;
  while (true) {
    if (is_cancelled()) return fail(Code::kCancelled, "stopped");
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

Result<void> read_exactly(const std::string& path, std::span<const std::span<std::byte>> pieces) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) return open_error(path, errno);
  CICADA_ASSIGN(const std::size_t size, regular_file_size(fd.get(), path));
  std::size_t wanted = 0;
  for (const std::span<std::byte> piece : pieces) wanted += piece.size();
  if (size != wanted) {
    return fail(Code::kCorrupt, "{}: has {} bytes, {} are expected", path, size, wanted);
  }
  for (std::span<std::byte> piece : pieces) {
    while (!piece.empty()) {
      const ssize_t got = ::read(fd.get(), piece.data(), piece.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return fail(Code::kIo, "{}: {}", path, system_words(errno));
      if (got == 0) return fail(Code::kCorrupt, "{}: was cut short while it was read", path);
      piece = piece.subspan(static_cast<std::size_t>(got));
    }
  }
  return {};
}

Result<AtomicFileWriter> AtomicFileWriter::create(const std::string& path, Temporary kind) {
  CICADA_ASSIGN(std::string target, behind_links(path));
  AtomicFileWriter writer(std::move(target));
  if (kind == Temporary::kUnnamedWherePossible) writer.fd_ = open_unnamed(writer.path_);
  if (writer.fd_ < 0) {
    writer.fd_ = open_named(writer.temporary_);
    if (writer.fd_ < 0) return write_error(path, errno);
    writer.has_name_ = true;
  }
  return writer;
}

AtomicFileWriter::AtomicFileWriter(std::string path)
    : path_(std::move(path)), temporary_(path_ + ".partial-" + std::to_string(::getpid())) {}

AtomicFileWriter::AtomicFileWriter(AtomicFileWriter&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::exchange(other.fd_, -1)),
      has_name_(std::exchange(other.has_name_, false)),
      position_(other.position_) {}

AtomicFileWriter::~AtomicFileWriter() {
  if (fd_ >= 0) ::close(fd_);
  if (has_name_) ::unlink(temporary_.c_str());
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

Result<void> AtomicFileWriter::finish(Flush flush) {
  if ((flush == Flush::kToDisk && ::fsync(fd_) != 0) || !put_in_place()) {
    return fail(Code::kIo, "{}: writing failed: {}", path_, system_words(errno));
  }
  ::close(std::exchange(fd_, -1));
  return {};
}

// False with errno set.
bool AtomicFileWriter::put_in_place() {
  if (!has_name_) {
    const auto name_it = [this](const std::string& name) {
      return ::linkat(AT_FDCWD, fd_path(fd_).c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) ==
             0;
    };
    if (name_it(path_)) return true;
    if (errno != EEXIST) return false;
    // A link does not replace what is there, a rename does.
    ::unlink(temporary_.c_str());
    has_name_ = name_it(temporary_);
    if (!has_name_) return false;
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return false;
  has_name_ = false;
  return true;
}

}  // namespace cicada::platform
