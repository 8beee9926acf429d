// Another program that runs beside this one and ends with it.
// Threads: a ChildProcess may be used by several threads, its destructor by one when no other uses
// it any more.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cicada/base/result.h"
#include "cicada/platform/fd.h"
#include "cicada/platform/launch.h"

namespace cicada::platform {

struct ChildOptions {
  // The program (looked up in PATH when it holds no '/') and its arguments; not empty.
  std::vector<std::string> argv;
  // Added to our environment, or put in place of what is there.
  std::map<std::string, std::string> environment;
  // Borrowed for the call: what the child has as kInheritedFd; -1: nothing. The standard ones
  // apart it gets no other descriptor of ours, however that was opened.
  int inherited_fd = -1;
};

class ChildProcess {
  struct Private {
    explicit Private() = default;
  };

 public:
  // Returns as soon as the program runs. Its standard input is empty; output and errors go where
  // ours go. It is killed when this process dies, and, as Linux counts it, when the thread that
  // called start() ends: call it from one that lives as long as the child is needed.
  // Errors: kNotFound when there is no such program, kIo when it cannot be started.
  static Result<std::unique_ptr<ChildProcess>> start(const ChildOptions& options);

  ChildProcess(Private, int pid, Fd end) : pid_(pid), end_(std::move(end)) {}
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  // Kills it if it still runs, and waits for its end.
  ~ChildProcess();

  int pid() const { return pid_; }

  // Waits until it ended, and at most so long. Its exit status, 128 + n when signal n ended it;
  // nothing when it still runs. May be asked again afterwards.
  std::optional<int> wait_for(std::chrono::milliseconds most);

  // Sends a signal; nothing happens when it is known to have ended.
  void kill(int signal);

 private:
  std::optional<int> ask_status();
  void sleep_until_end(std::chrono::milliseconds most) const;

  const int pid_;
  const Fd end_;  // readable from the child's end on; none where the kernel is too old
  std::mutex mutex_;
  std::optional<int> status_;  // guarded by mutex_; from then on pid_ may be another's
};

// A path under which this very program can be started again, also when its file was replaced or
// removed since. Errors: kIo.
Result<std::string> executable_path();

}  // namespace cicada::platform
