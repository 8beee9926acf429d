#include "cicada/platform/resources.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>

#include "cicada/platform/cgroup.h"

namespace cicada::platform {
namespace {

// The number that a text begins with, after spaces.
std::optional<std::uint64_t> leading_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

}  // namespace

std::uint64_t peak_resident_bytes() {
  struct rusage usage {};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;  // Linux counts in KiB
}

std::uint64_t available_memory_bytes(std::string_view meminfo, const std::vector<std::string>& most,
                                     const std::vector<std::string>& used) {
  constexpr std::string_view kKey = "MemAvailable:";
  std::uint64_t available = std::uint64_t{1} << 63;
  if (const std::size_t at = meminfo.find(kKey); at != std::string_view::npos) {
    const auto kib = leading_number(meminfo.substr(at + kKey.size()));
    if (kib) available = *kib * 1024;
  }
  // "max" is no number, and no limit.
  for (std::size_t i = 0; i < std::min(most.size(), used.size()); ++i) {
    const auto limit = leading_number(most[i]);
    const auto taken = leading_number(used[i]);
    if (limit && taken) available = std::min(available, *limit - std::min(*limit, *taken));
  }
  return available;
}

std::uint64_t available_memory_bytes() {
  std::ifstream file("/proc/meminfo");
  const std::string meminfo(std::istreambuf_iterator<char>(file), {});
  std::vector<std::string> most;
  std::vector<std::string> used;
  for (const std::string& folder : cgroup_folders("")) {
    most.push_back(first_line(folder + "/memory.max"));
    used.push_back(first_line(folder + "/memory.current"));
  }
  for (const std::string& folder : cgroup_folders("memory")) {
    most.push_back(first_line(folder + "/memory.limit_in_bytes"));
    used.push_back(first_line(folder + "/memory.usage_in_bytes"));
  }
  return available_memory_bytes(meminfo, most, used);
}

}  // namespace cicada::platform
