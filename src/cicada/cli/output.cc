#include "cicada/cli/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "cicada/cli/printable.h"
#include "cicada/platform/terminal.h"

namespace cicada::cli {

void Output::write(std::string_view bytes) {
  if (error_number_ != 0 || bytes.empty()) return;
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size()) error_number_ = errno;
}

bool Output::stream(std::string_view text) {
  if (platform::is_terminal(STDOUT_FILENO)) {
    write(printable_lines(text));
  } else {
    write(text);
  }
  flush();
  return error_number_ == 0;
}

Result<void> Output::finish() {
  flush();
  if (error_number_ == 0) return {};
  return fail(Code::kInternal, "standard output: {}",
              std::generic_category().message(error_number_));
}

void Output::flush() {
  if (error_number_ == 0 && std::fflush(stdout) != 0) error_number_ = errno;
}

}  // namespace cicada::cli
