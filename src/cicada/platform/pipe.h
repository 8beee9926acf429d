// A pipe whose ends close themselves and are not inherited.
// Threads: values.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "cicada/base/result.h"
#include "cicada/platform/fd.h"
#include "cicada/platform/system_words.h"

namespace cicada::platform {

struct Pipe {
  Fd read_end;
  Fd write_end;
};

// Errors: kIo.
inline Result<Pipe> make_pipe() {
  std::array<int, 2> fds{};
  if (::pipe2(fds.data(), O_CLOEXEC) != 0) {
    return fail(Code::kIo, "a pipe cannot be made: {}", system_words(errno));
  }
  return Pipe{Fd(fds[0]), Fd(fds[1])};
}

}  // namespace cicada::platform
