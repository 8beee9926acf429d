// Checks of our own invariants. They never depend on bytes from a file, a socket or a user: those
// become an Error (base/result.h).
#pragma once

#include <string_view>

namespace cicada {

// Prints the broken invariant and ends the process.
[[noreturn]] void check_failed(std::string_view condition, std::string_view message,
                               const char* file, int line);

}  // namespace cicada

#define CICADA_CHECK(condition, message)                                 \
  do {                                                                   \
    if (!(condition)) [[unlikely]]                                       \
      ::cicada::check_failed(#condition, (message), __FILE__, __LINE__); \
  } while (false)

#ifdef NDEBUG
#define CICADA_DCHECK(condition, message) static_cast<void>(0)
#else
#define CICADA_DCHECK(condition, message) CICADA_CHECK(condition, message)
#endif
