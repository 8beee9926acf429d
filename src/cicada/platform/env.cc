#include "cicada/platform/env.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace cicada::platform {

std::optional<std::string> environment_variable(const std::string& name) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nothing in this program changes the environment
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

std::vector<std::string> environment_with(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!changes.contains(std::string(text.substr(0, text.find('='))))) entries.emplace_back(text);
  }
  for (const auto& [name, value] : changes) {
    std::string& entry = entries.emplace_back(name);
    entry += '=';
    entry += value;
  }
  return entries;
}

}  // namespace cicada::platform
