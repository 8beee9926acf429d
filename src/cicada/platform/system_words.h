// What the system says about one of its error numbers.
// Threads: callable from any; not in a child between fork and exec.
#pragma once

#include <string>
#include <system_error>

namespace cicada::platform {

// "No such file or directory" for ENOENT.
inline std::string system_words(int number) { return std::generic_category().message(number); }

}  // namespace cicada::platform
