// Text for a terminal that may hold words of a file or a stranger: nothing in it can move the
// cursor, change colours or turn the order of letters around.
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

namespace cicada::cli {

// The text with control characters (C0, DEL, C1), marks of direction and bytes that are not UTF-8
// written as \xNN, byte by byte. Other characters stay; line ends and tabs are control characters.
std::string printable(std::string_view text);

// The same for running text: line ends, tabs and marks of direction stay.
std::string printable_lines(std::string_view text);

}  // namespace cicada::cli
