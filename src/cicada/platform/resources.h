// What this process has used and what the machine has left.
#pragma once

#include <cstdint>

namespace cicada::platform {

// The most memory this process had resident at any time, in bytes.
std::uint64_t peak_resident_bytes();

}  // namespace cicada::platform
