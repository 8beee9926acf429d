// What a template's source says about itself, without running it.
// Threads: pure functions.
#pragma once

#include <string_view>

namespace cicada::chat {

// Whether a statement or an expression of the template names the variable: not its text, comments
// or strings, and not an attribute of that name.
bool reads_variable(std::string_view source, std::string_view name);

}  // namespace cicada::chat
