// Lines on standard error. Every line is made printable, so that words of a hostile file cannot
// move the cursor; a line that cannot be written is lost, since there is nobody left to tell.
// Threads: any.
#pragma once

#include <string_view>

namespace cicada::cli {

// "<line>": for what a user likes to know.
void say(std::string_view line);

// "cicada: <sentence>": for what is wrong, or not as asked for.
void complain(std::string_view sentence);

}  // namespace cicada::cli
