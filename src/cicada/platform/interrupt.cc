#include "cicada/platform/interrupt.h"

#include <atomic>
#include <csignal>
#include <cstdlib>

namespace cicada::platform {
namespace {

// A signal handler can reach nothing but a global. Relaxed order suffices: the flag carries no
// other data, and the work that polls it only has to see it some time later.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): the handler has no argument
std::atomic<bool> interrupt_flag{false};
static_assert(std::atomic<bool>::is_always_lock_free, "used in a signal handler");

constexpr int kRunTimeFailure = 1;

void on_signal(int) {
  if (interrupt_flag.exchange(true, std::memory_order_relaxed)) std::_Exit(kRunTimeFailure);
}

}  // namespace

void install_interrupt_handler() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  // No SA_RESTART: a blocking read of the terminal returns, so that a chat notices the signal.
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &action, nullptr);
}

bool interrupted() { return interrupt_flag.load(std::memory_order_relaxed); }

void clear_interrupt() { interrupt_flag.store(false, std::memory_order_relaxed); }

}  // namespace cicada::platform
