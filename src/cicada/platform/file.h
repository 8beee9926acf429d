// Files: a read-only mapping, whole-file reads with a limit, and an atomic writer.
// Threads: a MappedFile may be read from several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cicada/base/result.h"

namespace cicada::platform {

// A file mapped read-only; unmapped on destruction. Views of bytes() are valid as long as it lives.
class MappedFile {
 public:
  // Errors: kNotFound, kIo (with the system's words), kInvalidArgument for a directory or other
  // thing that cannot be mapped. An empty file maps to an empty span.
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_bytes_}; }
  const std::string& path() const { return path_; }

  // Tells the kernel that a range will be read once, front to back, soon.
  void will_need(std::size_t offset_bytes, std::size_t size_bytes) const;

  // Gives the whole pages inside a range back: they no longer count as resident and are read again
  // from the file when touched.
  void drop_pages(std::size_t offset_bytes, std::size_t size_bytes) const;

 private:
  MappedFile(std::string path, const std::byte* data, std::size_t size_bytes)
      : path_(std::move(path)), data_(data), size_bytes_(size_bytes) {}

  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

// Reads a text file of at most `max_bytes`. Errors: kNotFound, kIo, kInvalidArgument when larger.
Result<std::string> read_file(const std::string& path, std::uint64_t max_bytes);

// Writes a file so that a reader sees the old one or the whole new one: a temporary beside it, then
// a rename in finish(). Dropped without finish(): the temporary is removed.
class AtomicFileWriter {
 public:
  static Result<AtomicFileWriter> create(const std::string& path);

  AtomicFileWriter(AtomicFileWriter&& other) noexcept;
  AtomicFileWriter& operator=(AtomicFileWriter&& other) = delete;
  AtomicFileWriter(const AtomicFileWriter&) = delete;
  AtomicFileWriter& operator=(const AtomicFileWriter&) = delete;
  ~AtomicFileWriter();

  Result<void> write(std::span<const std::byte> bytes);
  Result<void> write(std::string_view text);
  // Bytes written so far.
  std::uint64_t position() const { return position_; }
  // Flushes to disk and renames into place.
  Result<void> finish();

 private:
  AtomicFileWriter(std::string path, std::string temporary, int fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

  std::string path_;
  std::string temporary_;
  int fd_ = -1;
  std::uint64_t position_ = 0;
};

}  // namespace cicada::platform
