// When a file was changed. Threads: a pure function of the file system.
#pragma once

#include <cstdint>
#include <string>

namespace cicada::platform {

// Seconds since 1970; 0 where there is no such file.
std::int64_t modified_unix_s(const std::string& path);

}  // namespace cicada::platform
