// How another program is started; shared by run_process() and ChildProcess. Internal to platform.
// Threads: callable from several threads; returns as soon as the program runs.
#pragma once

#include <csignal>
#include <map>
#include <string>
#include <vector>

#include "cicada/base/result.h"

namespace cicada::platform {

// The number under which a program finds the descriptor that it was given.
inline constexpr int kInheritedFd = 3;

// Everything that a program starts with. Its standard input is empty, and of our descriptors it has
// the standard ones and those named here.
struct Launch {
  std::string program;  // a path
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // "NAME=value"
  int output_fd = -1;          // borrowed: its standard output and error; -1: where ours go
  int inherited_fd = -1;       // borrowed: what it has as kInheritedFd; -1: nothing
  int death_signal = SIGTERM;  // what it gets when the thread that started it ends
  bool has_own_group = false;  // its process id is also the id of a new process group
};

// `argv` not empty; its program is looked up in the PATH of `environment`, else in ours, when it
// holds no '/'. Errors: kNotFound.
Result<Launch> prepare_launch(const std::vector<std::string>& argv,
                              const std::map<std::string, std::string>& environment);

// Starts it and returns its process id, which the caller has to wait for. Errors: kIo, also when
// the system refuses to execute it.
Result<int> start(Launch launch);

// The exit status that a shell would show for what waitpid() gave: 128 + n when signal n ended it.
int exit_status(int wait_status);

}  // namespace cicada::platform
