#include "cicada/platform/launch.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "cicada/base/check.h"
#include "cicada/platform/env.h"
#include "cicada/platform/pipe.h"
#include "cicada/platform/process.h"
#include "cicada/platform/system_words.h"

// <linux/close_range.h> is younger than some of the C libraries that we build with.
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

namespace cicada::platform {
namespace {

constexpr const char* kDefaultPath = "/usr/local/bin:/usr/bin:/bin";
constexpr int kExecFailed = 127;

// Pointers into `texts` with the null at the end that exec wants; valid while `texts` is.
std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// --- In the child: only async-signal-safe calls, as another thread may have held a lock of the
// --- allocator at the moment of the fork.

[[noreturn]] void report_and_exit(int report_fd, int number) {
  // Nobody is left to be told when this write fails.
  if (::write(report_fd, &number, sizeof number) < 0) ::_exit(kExecFailed);
  ::_exit(kExecFailed);
}

// A copy out of the way of the numbers that are given out below. Closed by exec.
int moved_up(int fd, int report_fd) {
  constexpr int kFirstFree = kInheritedFd + 1;
  if (fd < 0) return fd;
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, kFirstFree);
  if (copy < 0) report_and_exit(report_fd, errno);
  return copy;
}

void place(int fd, int number, int report_fd) {
  if (fd >= 0 && ::dup2(fd, number) < 0) report_and_exit(report_fd, errno);
}

// Libraries open descriptors that survive an exec, and a connection that a child holds as well does
// not end when we close it.
void close_on_exec_from(int first) {
  if (::close_range(static_cast<unsigned>(first), ~0U, CLOSE_RANGE_CLOEXEC) == 0) return;
  constexpr rlim_t kMostTried = 65536;  // an old kernel: as many as anybody will have
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const int end = static_cast<int>(std::min(limit.rlim_cur, kMostTried));
  for (int fd = first; fd < end; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

void give_descriptors(const Launch& launch, int report_fd) {
  const int output = moved_up(launch.output_fd, report_fd);
  const int inherited = moved_up(launch.inherited_fd, report_fd);
  const int null_fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  place(moved_up(null_fd, report_fd), STDIN_FILENO, report_fd);
  place(output, STDOUT_FILENO, report_fd);
  place(output, STDERR_FILENO, report_fd);
  place(inherited, kInheritedFd, report_fd);
  close_on_exec_from(inherited >= 0 ? kInheritedFd + 1 : kInheritedFd);
}

[[noreturn]] void run_child(const Launch& launch, char* const* argv, char* const* envp,
                            int original_report_fd, pid_t parent) {
  if (launch.has_own_group) ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, launch.death_signal);
  if (::getppid() != parent) ::_exit(kExecFailed);  // the parent died before the line above
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  for (const int number : {SIGINT, SIGTERM, SIGPIPE}) ::sigaction(number, &plain, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  const int report_fd = moved_up(original_report_fd, original_report_fd);
  give_descriptors(launch, report_fd);
  ::execve(launch.program.c_str(), argv, envp);
  report_and_exit(report_fd, errno);
}

}  // namespace

Result<Launch> prepare_launch(const std::vector<std::string>& argv,
                              const std::map<std::string, std::string>& environment) {
  CICADA_CHECK(!argv.empty(), "a program to run");
  const auto own_path = environment.find("PATH");
  const std::string path = own_path != environment.end()
                               ? own_path->second
                               : environment_variable("PATH").value_or(kDefaultPath);
  Launch launch;
  CICADA_ASSIGN(launch.program, find_program(argv.front(), path));
  launch.arguments = argv;
  launch.environment = environment_with(environment);
  return launch;
}

Result<int> start(Launch launch) {
  std::vector<char*> argv = pointers(launch.arguments);
  std::vector<char*> envp = pointers(launch.environment);
  // Receives errno when exec fails; closed by one that succeeds.
  CICADA_ASSIGN(Pipe report, make_pipe());
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    return fail(Code::kIo, "{}: cannot be started: {}", launch.program, system_words(errno));
  }
  if (child == 0) run_child(launch, argv.data(), envp.data(), report.write_end.get(), parent);
  // Also here, so that the group exists before we might signal it.
  if (launch.has_own_group) ::setpgid(child, child);
  report.write_end.close();
  int number = 0;
  ssize_t got = 0;
  do {
    got = ::read(report.read_end.get(), &number, sizeof number);
  } while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(sizeof number)) {
    ::waitpid(child, nullptr, 0);
    return fail(Code::kIo, "{}: cannot be started: {}", launch.program, system_words(number));
  }
  return child;
}

int exit_status(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace cicada::platform
