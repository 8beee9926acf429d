#include "cicada/platform/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <string_view>
#include <utility>

#include "cicada/platform/launch.h"
#include "cicada/platform/pipe.h"
#include "cicada/platform/system_words.h"

namespace cicada::platform {
namespace {

using Clock = std::chrono::steady_clock;

// Short enough that an ended program is noticed at once, long enough to cost nothing.
constexpr int kPollMs = 10;
// The caller's `cancelled` may look at files, so it is asked less often.
constexpr std::chrono::milliseconds kCancelInterval{50};

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
    result_.exit_status = exit_status(status);
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
  CICADA_ASSIGN(Launch launch, prepare_launch(options.argv, options.environment));
  CICADA_ASSIGN(Pipe output, make_pipe());
  const bool captured = options.output == ProcessOutput::kCapture;
  if (captured) launch.output_fd = output.write_end.get();
  launch.has_own_group = true;
  CICADA_ASSIGN(const pid_t child, start(std::move(launch)));
  output.write_end.close();
  return Wait(options, child, captured ? output.read_end.get() : -1).run();
}

}  // namespace cicada::platform
