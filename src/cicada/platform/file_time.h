// What the system knows of a file without reading it. Threads: pure functions of the file system.
#pragma once

#include <cstdint>
#include <string>

namespace cicada::platform {

// Seconds since 1970; 0 where there is no such file.
std::int64_t modified_unix_s(const std::string& path);

// A name for the bytes that a path leads to, of device, inode, size and time of change: another
// file put in its place has another, the same one moved away and back has its own. "none" where
// there is no such file.
std::string file_version(const std::string& path);

}  // namespace cicada::platform
