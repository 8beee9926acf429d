// Remembers that a file was hashed, so that a start need not read it again: "<file>.json" beside it
// holds the SHA-256 with the size and time of the file at that moment.
// Threads: callable from several threads on distinct files.
#pragma once

#include <string>
#include <string_view>

#include "cicada/base/result.h"

namespace cicada::catalog {

// Where the record of a file lies.
std::string hash_record_path(const std::string& file);

// Remembers that `file`, as it is now, has this hash. Errors: kIo.
Result<void> remember_sha256(const std::string& file, std::string_view sha256);

// True when `file` has not changed in size or time since it was remembered with this hash.
bool is_remembered(const std::string& file, std::string_view sha256);

}  // namespace cicada::catalog
