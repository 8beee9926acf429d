// Verification of a model file: its container, its numbers, its checksum.
// Threads: callable from several threads; `progress` is called on the caller's.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/base/result.h"

namespace cicada::formats {

struct VerifyOptions {
  // The digest the file must have, 64 hex digits (parse_sha256). Neutral: none is computed.
  std::optional<std::string> sha256;
  // Called now and then with bytes done of all to do; false stops. May be empty.
  std::function<bool(std::uint64_t done_bytes, std::uint64_t total_bytes)> progress;
};

struct VerifyReport {
  std::vector<std::string> problems;  // one sentence each; empty: nothing found
  std::optional<std::string> sha256;  // of the file, where it was asked for

  bool ok() const { return problems.empty(); }
};

// Checks everything a reader checks, every number of every tensor (NaN and infinite values), bytes
// that belong to nothing, and the digest. At most 100 tensors are named; the rest are counted.
// Errors: kNotFound, kIo, kInvalidArgument for a digest that is none; kCancelled. A file that is
// broken is no error but a problem.
Result<VerifyReport> verify(const std::string& path, const VerifyOptions& options);

// A digest in lower case. Errors: kInvalidArgument unless it is exactly 64 hex digits.
Result<std::string> parse_sha256(std::string_view text);

// The digest of `file_name` in the text of a `sha256sum` file: lines of 64 hex digits, a space, a
// space or '*', a name (its folder is ignored). Errors: kInvalidArgument for a line that is not so,
// with its number; kNotFound when no line names the file.
Result<std::string> find_sha256(std::string_view sums, std::string_view file_name);

}  // namespace cicada::formats
