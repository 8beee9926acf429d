// Memory that is there before it is needed.
#pragma once

#include <cstddef>

namespace cicada::platform {

// Makes the system give memory for [data, data + size) now, as if it were written; what is in it
// stays, also when others write meanwhile. Only whole pages inside of it. False where the system
// cannot (Linux before 5.14): then nothing happened. Threads: any.
bool populate(std::byte* data, std::size_t size);

// Runs the calling thread only when a processor has nothing else to do. A wish: failure is ignored.
void run_when_idle();

}  // namespace cicada::platform
