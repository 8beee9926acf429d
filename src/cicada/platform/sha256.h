// SHA-256 of files and streams (OpenSSL's libcrypto).
// Threads: one Sha256 per thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "cicada/base/result.h"

namespace cicada::platform {

class Sha256 {
 public:
  // Errors: kInternal when libcrypto refuses.
  static Result<Sha256> create();

  Result<void> update(std::span<const std::byte> bytes);
  // The digest as 64 lower-case hex digits. Call once, at the end.
  Result<std::string> hex_digest();

 private:
  struct Deleter {
    void operator()(void* context) const;
  };
  explicit Sha256(void* context) : context_(context) {}

  std::unique_ptr<void, Deleter> context_;
};

// Called now and then with the bytes done; false stops.
using HashProgress = std::function<bool(std::uint64_t done_bytes)>;

// The digest of bytes in memory or mapped.
// Errors: kCancelled when `progress` (may be empty) returned false.
Result<std::string> sha256_hex(std::span<const std::byte> bytes, const HashProgress& progress = {});

// The digest of a file, read in pieces. Errors: as sha256_hex; kNotFound, kIo.
Result<std::string> sha256_file(const std::string& path, const HashProgress& progress = {});

}  // namespace cicada::platform
