// Files: a read-only mapping, whole-file reads with a limit, and an atomic writer.
// Threads: a MappedFile may be read from several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "cicada/base/result.h"

namespace cicada::platform {

// A file mapped read-only; unmapped on destruction. Views of bytes() are valid as long as it lives.
class MappedFile {
 public:
  // Errors: kNotFound, kIo (with the system's words), kInvalidArgument for a directory or other
  // thing that cannot be mapped, kOutOfMemory for lack of address space. An empty file maps to an
  // empty span.
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

// Reads a text file, or whatever a pipe or terminal gives until its end, of at most `max_bytes`.
// `cancelled` is asked before each piece and when a signal interrupts the waiting for one.
// Errors: kNotFound, kIo, kInvalidArgument when larger, kCancelled.
Result<std::string> read_file(const std::string& path, std::uint64_t max_bytes,
                              const std::function<bool()>& cancelled = {});

// Reads a regular file that is exactly as long as the pieces together into them, one after the
// other. Errors: kNotFound, kIo; kInvalidArgument for a directory or other thing; kCorrupt for a
// file of another size. What the pieces then hold is anything.
Result<void> read_exactly(const std::string& path, std::span<const std::span<std::byte>> pieces);

// Writes a file so that a reader sees the old one or the whole new one, which appears in finish().
// Until then it has no name, so that nothing is left however the process ends; a file system that
// cannot do that holds it as "<path>.partial-<process>", removed when dropped without finish().
class AtomicFileWriter {
 public:
  enum class Temporary : std::uint8_t { kUnnamedWherePossible, kNamed };

  // Follows links: the file that `path` points to, there or not, is the one that is replaced.
  // Errors: kInvalidArgument for a directory, device, pipe or loop of links; kIo.
  static Result<AtomicFileWriter> create(const std::string& path,
                                         Temporary kind = Temporary::kUnnamedWherePossible);

  AtomicFileWriter(AtomicFileWriter&& other) noexcept;
  AtomicFileWriter& operator=(AtomicFileWriter&& other) = delete;
  AtomicFileWriter(const AtomicFileWriter&) = delete;
  AtomicFileWriter& operator=(const AtomicFileWriter&) = delete;
  ~AtomicFileWriter();

  Result<void> write(std::span<const std::byte> bytes);
  Result<void> write(std::string_view text);
  // Bytes written so far.
  std::uint64_t position() const { return position_; }
  // Puts the file in its place; by default its bytes are on the disk by then.
  enum class Flush : std::uint8_t { kToDisk, kLeaveToSystem };
  Result<void> finish(Flush flush = Flush::kToDisk);

 private:
  explicit AtomicFileWriter(std::string path);

  bool put_in_place();

  std::string path_;       // to be, behind all links
  std::string temporary_;  // beside it
  int fd_ = -1;
  bool has_name_ = false;  // there is a file under the temporary name
  std::uint64_t position_ = 0;
};

}  // namespace cicada::platform
