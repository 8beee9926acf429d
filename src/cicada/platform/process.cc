#include "cicada/platform/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "cicada/base/check.h"
#include "cicada/platform/env.h"

namespace cicada::platform {
namespace {

using Clock = std::chrono::steady_clock;

// Short enough that an ended program is noticed at once, long enough to cost nothing.
constexpr int kPollMs = 10;
// The caller's `cancelled` may look at files, so it is asked less often.
constexpr std::chrono::milliseconds kCancelInterval{50};
constexpr const char* kDefaultPath = "/usr/local/bin:/usr/bin:/bin";
constexpr int kExecFailed = 127;

std::string system_words(int number) { return std::generic_category().message(number); }

// Both ends of a pipe; closed on destruction unless released.
class Pipe {
 public:
  static Result<Pipe> create() {
    Pipe pipe;
    if (::pipe2(pipe.fds_.data(), O_CLOEXEC) != 0) {
      return fail(Code::kIo, "a pipe cannot be made: {}", system_words(errno));
    }
    return pipe;
  }
  Pipe(Pipe&& other) noexcept : fds_(std::exchange(other.fds_, {-1, -1})) {}
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  Pipe& operator=(Pipe&&) = delete;
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  int read_end() const { return fds_[0]; }
  int write_end() const { return fds_[1]; }
  void close_write_end() { close_end(1); }

 private:
  Pipe() = default;
  void close_end(std::size_t end) {
    if (fds_[end] >= 0) ::close(std::exchange(fds_[end], -1));
  }
  std::array<int, 2> fds_ = {-1, -1};
};

// Pointers into `texts` with the null at the end that exec wants; valid while `texts` is.
std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// Everything the child needs, made before the fork: after it only async-signal-safe calls may be
// made, as another thread may have held a lock of the allocator.
struct Launch {
  std::string program;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  int output_fd = -1;  // -1: inherit
  int report_fd = -1;  // receives errno when exec fails; closed by a successful exec
};

[[noreturn]] void run_child(const Launch& launch, char* const* argv, char* const* envp,
                            pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(kExecFailed);  // the parent died before the line above
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  for (const int number : {SIGINT, SIGTERM, SIGPIPE}) ::sigaction(number, &plain, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  const int null_fd = ::open("/dev/null", O_RDONLY);
  if (null_fd >= 0) ::dup2(null_fd, STDIN_FILENO);
  if (launch.output_fd >= 0) {
    ::dup2(launch.output_fd, STDOUT_FILENO);
    ::dup2(launch.output_fd, STDERR_FILENO);
  }
  ::execve(launch.program.c_str(), argv, envp);
  const int number = errno;
  // Nobody is left to be told when this write fails.
  if (::write(launch.report_fd, &number, sizeof number) < 0) ::_exit(kExecFailed);
  ::_exit(kExecFailed);
}

// Starts the program; its process id is also its process group.
Result<pid_t> start(Launch& launch, Pipe& report) {
  std::vector<char*> argv = pointers(launch.arguments);
  std::vector<char*> envp = pointers(launch.environment);
  launch.report_fd = report.write_end();
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    return fail(Code::kIo, "{}: cannot be started: {}", launch.program, system_words(errno));
  }
  if (child == 0) run_child(launch, argv.data(), envp.data(), parent);
  ::setpgid(child, child);  // also here, so that the group exists before we might signal it
  report.close_write_end();
  int number = 0;
  ssize_t got = 0;
  do {
    got = ::read(report.read_end(), &number, sizeof number);
  } while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(sizeof number)) {
    ::waitpid(child, nullptr, 0);
    return fail(Code::kIo, "{}: cannot be started: {}", launch.program, system_words(number));
  }
  return child;
}

// Takes what is there now; keeps the last max_bytes. False at the end of the stream.
bool take_output(int fd, std::size_t max_bytes, std::string& output) {
  std::array<char, 4096> buffer{};
  const ssize_t got = ::read(fd, buffer.data(), buffer.size());
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  output.append(buffer.data(), static_cast<std::size_t>(got));
  if (output.size() > max_bytes) output.erase(0, output.size() - max_bytes);
  return got > 0;
}

// Waits for the program, gathering its output; fd -1 when there is none to gather.
class Wait {
 public:
  Wait(const ProcessOptions& options, pid_t child, int fd)
      : options_(options), child_(child), fd_(fd) {}

  Result<ProcessResult> run() {
    while (true) {
      int status = 0;
      const pid_t ended = ::waitpid(child_, &status, WNOHANG);
      if (ended < 0 && errno != EINTR) {
        return fail(Code::kIo, "{}: lost: {}", options_.argv.front(), system_words(errno));
      }
      if (ended == child_) return finish(status);
      gather();
      check_cancelled();
    }
  }

 private:
  // Sleeps until there is output or kPollMs have passed.
  void gather() {
    struct pollfd entry {};
    entry.fd = fd_;
    entry.events = POLLIN;
    if (::poll(&entry, 1, kPollMs) <= 0 || fd_ < 0) return;
    if (!take_output(fd_, options_.max_output_bytes, result_.output)) fd_ = -1;
  }

  void check_cancelled() {
    const Clock::time_point now = Clock::now();
    if (!stop_time_) {
      if (!options_.cancelled || now < next_question_) return;
      next_question_ = now + kCancelInterval;
      if (!options_.cancelled()) return;
      stop_time_ = now;
      ::kill(-child_, SIGTERM);
    } else if (now - *stop_time_ >= options_.grace) {
      ::kill(-child_, SIGKILL);
    }
  }

  Result<ProcessResult> finish(int status) {
    // Grandchildren must not outlive a cancelled program; the group may be empty by now.
    if (stop_time_) {
      ::kill(-child_, SIGKILL);
      return fail(Code::kCancelled, "{}: stopped", options_.argv.front());
    }
    // What is left in the pipe. A grandchild may hold it open, so this does not wait for its end.
    if (fd_ >= 0) {
      ::fcntl(fd_, F_SETFL, O_NONBLOCK);
      struct pollfd entry {};
      entry.fd = fd_;
      entry.events = POLLIN;
      while (::poll(&entry, 1, 0) > 0 &&
             take_output(fd_, options_.max_output_bytes, result_.output)) {
      }
    }
    result_.exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return std::move(result_);
  }

  const ProcessOptions& options_;
  const pid_t child_;
  int fd_;
  ProcessResult result_;
  Clock::time_point next_question_;
  std::optional<Clock::time_point> stop_time_;
};

}  // namespace

Result<std::string> find_program(const std::string& name, const std::string& path) {
  if (name.find('/') != std::string::npos) return name;
  std::string_view rest = path;
  while (true) {
    const std::size_t colon = rest.find(':');
    const std::string folder(rest.substr(0, colon));
    std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    struct stat info {};
    if (::stat(candidate.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
        ::access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
    if (colon == std::string_view::npos) break;
    rest.remove_prefix(colon + 1);
  }
  return fail(Code::kNotFound, "{}: no such program in PATH", name);
}

Result<ProcessResult> run_process(const ProcessOptions& options) {
  CICADA_CHECK(!options.argv.empty(), "a program to run");
  const auto own_path = options.environment.find("PATH");
  const std::string path = own_path != options.environment.end()
                               ? own_path->second
                               : environment_variable("PATH").value_or(kDefaultPath);
  Launch launch;
  CICADA_ASSIGN(launch.program, find_program(options.argv.front(), path));
  launch.arguments = options.argv;
  launch.environment = environment_with(options.environment);
  CICADA_ASSIGN(Pipe report, Pipe::create());
  CICADA_ASSIGN(Pipe output, Pipe::create());
  const bool captured = options.output == ProcessOutput::kCapture;
  if (captured) launch.output_fd = output.write_end();
  CICADA_ASSIGN(const pid_t child, start(launch, report));
  output.close_write_end();
  return Wait(options, child, captured ? output.read_end() : -1).run();
}

}  // namespace cicada::platform
