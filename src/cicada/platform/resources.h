// What this process has used and what the machine has left.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cicada::platform {

// The most memory this process had resident at any time, in bytes.
std::uint64_t peak_resident_bytes();

// What MemAvailable of /proc/meminfo leaves, and the control groups of this process (memory.max
// less memory.current), in bytes: an estimate, which other processes change. 2^63 where nothing is
// said.
std::uint64_t available_memory_bytes();

// The same from a text in the form of /proc/meminfo, and limits and use of groups, a line each;
// what is no number is no limit.
std::uint64_t available_memory_bytes(std::string_view meminfo, const std::vector<std::string>& most,
                                     const std::vector<std::string>& used);

}  // namespace cicada::platform
