#include "cicada/cli/output.h"

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace cicada::cli {

void Output::write(std::string_view bytes) {
  if (error_number_ != 0 || bytes.empty()) return;
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size()) error_number_ = errno;
}

Result<void> Output::finish() {
  if (error_number_ == 0 && std::fflush(stdout) != 0) error_number_ = errno;
  if (error_number_ == 0) return {};
  return fail(Code::kInternal, "standard output: {}",
              std::generic_category().message(error_number_));
}

}  // namespace cicada::cli
