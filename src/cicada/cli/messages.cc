#include "cicada/cli/messages.h"

#include <cstdio>
#include <string>

#include "cicada/cli/printable.h"

namespace cicada::cli {

void say(std::string_view line) {
  const std::string bytes = printable(line) + "\n";
  std::fwrite(bytes.data(), 1, bytes.size(), stderr);
}

void complain(std::string_view sentence) { say("cicada: " + std::string(sentence)); }

}  // namespace cicada::cli
