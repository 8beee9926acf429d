// Names from a file, made fit for a message: hostile bytes never reach a terminal or a log raw.
// Threads: a pure function.
#pragma once

#include <string>
#include <string_view>

namespace cicada::formats {

// The text with everything but printable ASCII written as \xNN, cut with "…" after 80 bytes.
std::string quote(std::string_view text);

}  // namespace cicada::formats
