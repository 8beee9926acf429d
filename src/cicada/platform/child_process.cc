#include "cicada/platform/child_process.h"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <thread>
#include <utility>

#include "cicada/platform/system_words.h"

namespace cicada::platform {
namespace {

using std::chrono::milliseconds;

// What is said of a child whose status somebody else took.
constexpr int kUnknownStatus = 127;
// Far beyond any wait that is meant, near enough to be added to the time of day.
constexpr milliseconds kMostWaited = std::chrono::hours(24);
// Between two questions where the kernel cannot tell of the end.
constexpr milliseconds kPollInterval{5};

// Called through its number, as the C library's name for it is younger than the kernel's.
Fd end_of_process(int pid) { return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

pid_t wait_for_process(int pid, int* status, int options) {
  pid_t ended = 0;
  do {
    ended = ::waitpid(pid, status, options);
  } while (ended < 0 && errno == EINTR);
  return ended;
}

}  // namespace

Result<std::unique_ptr<ChildProcess>> ChildProcess::start(const ChildOptions& options) {
  CICADA_ASSIGN(Launch launch, prepare_launch(options.argv, options.environment));
  launch.inherited_fd = options.inherited_fd;
  launch.death_signal = SIGKILL;
  CICADA_ASSIGN(const int pid, platform::start(std::move(launch)));
  return std::make_unique<ChildProcess>(Private(), pid, end_of_process(pid));
}

ChildProcess::~ChildProcess() {
  kill(SIGKILL);
  if (!status_) wait_for_process(pid_, nullptr, 0);
}

std::optional<int> ChildProcess::ask_status() {
  const std::scoped_lock lock(mutex_);
  if (status_) return status_;
  int status = 0;
  const pid_t ended = wait_for_process(pid_, &status, WNOHANG);
  if (ended == pid_) status_ = exit_status(status);
  if (ended < 0) status_ = kUnknownStatus;
  return status_;
}

void ChildProcess::sleep_until_end(milliseconds most) const {
  if (!end_.is_open()) {
    std::this_thread::sleep_for(std::min(most, kPollInterval));
    return;
  }
  struct pollfd entry {};
  entry.fd = end_.get();
  entry.events = POLLIN;
  ::poll(&entry, 1, static_cast<int>(most.count()));
}

std::optional<int> ChildProcess::wait_for(milliseconds most) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point deadline = Clock::now() + std::min(most, kMostWaited);
  while (true) {
    if (const auto status = ask_status()) return status;
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    if (left <= milliseconds::zero()) return std::nullopt;
    sleep_until_end(left);
  }
}

void ChildProcess::kill(int signal) {
  const std::scoped_lock lock(mutex_);
  // Until we have its status nobody else can get its number.
  if (!status_) ::kill(pid_, signal);
}

Result<std::string> executable_path() {
  constexpr const char* kLink = "/proc/self/exe";
  std::array<char, 4096> target{};
  const ssize_t length = ::readlink(kLink, target.data(), target.size());
  if (length < 0) return fail(Code::kIo, "{}: {}", kLink, system_words(errno));
  const std::string_view path(target.data(), static_cast<std::size_t>(length));
  // The link still leads to what runs here when no path does; a forked child has the same one.
  if (path.ends_with(" (deleted)") || path.size() == target.size()) return std::string(kLink);
  return std::string(path);
}

}  // namespace cicada::platform
