// Names for requests, replies and tool calls. Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cicada::server {

// `prefix` and 24 letters and digits from the system's random numbers.
std::string random_id(std::string_view prefix);
std::uint64_t random_number();

}  // namespace cicada::server
