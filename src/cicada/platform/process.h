// Runs another program and waits for it. No shell is ever involved: what is passed as one argument
// arrives as one argument.
// Threads: callable from several threads; the call blocks.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cicada/base/result.h"

namespace cicada::platform {

enum class ProcessOutput {
  kInherit,  // goes where ours goes
  kCapture,  // standard output and standard error together, into ProcessResult::output
};

struct ProcessOptions {
  // The program (looked up in PATH when it holds no '/') and its arguments; not empty.
  std::vector<std::string> argv;
  // Added to our environment, or put in place of what is there. A PATH given here is also the one
  // in which the program is looked up.
  std::map<std::string, std::string> environment;
  ProcessOutput output = ProcessOutput::kCapture;
  // Of a captured output the last so many bytes are kept, so a chatty program cannot fill memory.
  std::size_t max_output_bytes = std::size_t{1} << 16;
  // Asked about 20 times a second while the program runs; true ends it. Also the place to look at
  // how far it is. Empty: never.
  std::function<bool()> cancelled;
  // From the polite signal (SIGTERM) to the hard one (SIGKILL) after a cancellation.
  std::chrono::milliseconds grace{2000};
};

struct ProcessResult {
  int exit_status = 0;  // 128 + n when signal n ended it
  std::string output;   // empty unless captured
};

// Runs a program to its end. Its standard input is empty. It and its children form a process group,
// which is ended as a whole on cancellation, and it is told to end when we die.
// Errors: kNotFound when there is no such program, kIo when it cannot be started, kCancelled. A
// program that fails is not an error here: look at exit_status.
Result<ProcessResult> run_process(const ProcessOptions& options);

// Where a program would be found in `path` (the value of PATH). Errors: kNotFound.
Result<std::string> find_program(const std::string& name, const std::string& path);

}  // namespace cicada::platform
