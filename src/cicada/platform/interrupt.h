// Signals. Ctrl-C asks for a clean stop of the work in hand, SIGTERM and SIGHUP for one of the
// process; a second of any of them ends the process at once.
// Threads: the questions may be asked from any thread.
#pragma once

namespace cicada::platform {

// Takes over SIGINT, SIGTERM and SIGHUP for the rest of the process. A pipe or socket that nobody
// reads any more and a file that may not grow are left to the error of the write (EPIPE, EFBIG). A
// mapped file that another process cuts short ends this one with a sentence and status 1, as there
// is no memory to go on with. Called once, early in main().
void install_interrupt_handler();

// True from the first signal on. Long work looks at it and returns kCancelled.
bool interrupted();

// Forgets Ctrl-C, so that a chat can go on after an answer was stopped; SIGTERM and SIGHUP stay.
void clear_interrupt();

}  // namespace cicada::platform
