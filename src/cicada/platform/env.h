// Environment variables: the only home of getenv.
// Threads: safe as long as nobody changes the environment, which this program never does.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace cicada::platform {

// The value of a variable; nothing when it is unset. A variable set to "" is set.
std::optional<std::string> environment_variable(const std::string& name);

// The whole environment as "NAME=value" with `changes` added or put in place of what was there.
std::vector<std::string> environment_with(const std::map<std::string, std::string>& changes);

}  // namespace cicada::platform
