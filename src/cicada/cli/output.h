// Standard output of a command: everything is written or the failure is reported once, at the end.
// Threads: one thread.
#pragma once

#include <string_view>

#include "cicada/base/result.h"

namespace cicada::cli {

class Output {
 public:
  // Bytes go out as they are. After a failure nothing more is written.
  void write(std::string_view bytes);

  // Text of a model, out at once. On a terminal its control characters are spelled, so that it
  // cannot move the cursor. False once something could not be written: nobody reads any more.
  bool stream(std::string_view text);

  // Flushes. Errors: kInternal (a failure at run time) with the system's words, as when the disk is
  // full or nobody reads the pipe any more.
  Result<void> finish();

 private:
  void flush();

  int error_number_ = 0;  // of the first failure
};

}  // namespace cicada::cli
