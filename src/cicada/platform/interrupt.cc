#include "cicada/platform/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string_view>

namespace cicada::platform {
namespace {

enum class Asked : int { kNothing, kStop, kEnd };

// A signal handler can reach nothing but a global. Relaxed order suffices: it carries no other
// data, and the work that polls it only has to see it some time later.
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): the handler has no argument
std::atomic<Asked> asked{Asked::kNothing};
static_assert(std::atomic<Asked>::is_always_lock_free, "used in a signal handler");

constexpr int kRunTimeFailure = 1;

void on_signal(int signal) {
  const Asked what = signal == SIGINT ? Asked::kStop : Asked::kEnd;
  if (asked.exchange(what, std::memory_order_relaxed) != Asked::kNothing) {
    std::_Exit(kRunTimeFailure);
  }
}

void on_lost_memory(int /*signal*/) {
  constexpr std::string_view kSentence =
      "cicada: a file in use was cut short by another process, or its disk failed\n";
  // The result does not matter: there is nobody left to tell.
  [[maybe_unused]] const ssize_t written =
      ::write(STDERR_FILENO, kSentence.data(), kSentence.size());
  std::_Exit(kRunTimeFailure);
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  // No SA_RESTART: a blocking read of the terminal returns, so that a chat notices the signal.
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

void install_interrupt_handler() {
  handle(SIGINT, on_signal);
  handle(SIGTERM, on_signal);
  handle(SIGHUP, on_signal);
  handle(SIGPIPE, SIG_IGN);
  handle(SIGXFSZ, SIG_IGN);
  handle(SIGBUS, on_lost_memory);
}

bool interrupted() { return asked.load(std::memory_order_relaxed) != Asked::kNothing; }

void clear_interrupt() {
  Asked stop = Asked::kStop;
  asked.compare_exchange_strong(stop, Asked::kNothing, std::memory_order_relaxed);
}

}  // namespace cicada::platform
