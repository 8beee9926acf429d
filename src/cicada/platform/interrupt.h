// Signals. Ctrl-C and SIGTERM: the first one asks for a clean stop, the second one ends the process
// at once. Threads: interrupted() may be called from any thread.
#pragma once

namespace cicada::platform {

// Takes over SIGINT and SIGTERM for the rest of the process, and leaves a pipe or socket that
// nobody reads any more to the error of the write (EPIPE). Called once, early in main().
void install_interrupt_handler();

// True from the first signal on. Long work looks at it and returns kCancelled.
bool interrupted();

// Forgets a signal, so that a chat can go on after an answer was stopped.
void clear_interrupt();

}  // namespace cicada::platform
