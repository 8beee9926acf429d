#include "cicada/catalog/hash_record.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <system_error>

#include "cicada/platform/file.h"

namespace cicada::catalog {
namespace {

constexpr std::uint64_t kMaxRecordBytes = 1024;

// The record that `file` has if it is unchanged since it was hashed to `sha256`. A record is valid
// when it equals this text, so records need no parser.
Result<std::string> expected_record(const std::string& file, std::string_view sha256) {
  std::error_code error;
  const std::uintmax_t size_bytes = std::filesystem::file_size(file, error);
  if (error) return fail(Code::kIo, "{}: {}", file, error.message());
  const auto time = std::filesystem::last_write_time(file, error);
  if (error) return fail(Code::kIo, "{}: {}", file, error.message());
  const auto since_1970 = std::chrono::file_clock::to_sys(time).time_since_epoch();
  const auto time_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(since_1970).count();
  return fmt::format("{{\"sha256\":\"{}\",\"size_bytes\":{},\"mtime_ns\":{}}}\n", sha256,
                     size_bytes, time_ns);
}

}  // namespace

std::string hash_record_path(const std::string& file) { return file + ".json"; }

Result<void> remember_sha256(const std::string& file, std::string_view sha256) {
  CICADA_ASSIGN(const std::string record, expected_record(file, sha256));
  CICADA_ASSIGN(platform::AtomicFileWriter writer,
                platform::AtomicFileWriter::create(hash_record_path(file)));
  CICADA_TRY(writer.write(record));
  return writer.finish();
}

bool is_remembered(const std::string& file, std::string_view sha256) {
  const auto expected = expected_record(file, sha256);
  if (!expected) return false;
  const auto found = platform::read_file(hash_record_path(file), kMaxRecordBytes);
  return found && *found == *expected;
}

}  // namespace cicada::catalog
