#include "cicada/platform/topology.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "cicada/platform/cgroup.h"

namespace cicada::platform {
namespace {

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

}  // namespace

std::size_t affinity_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<std::size_t>(std::max(1, CPU_COUNT(&set)));
}

std::optional<double> parse_cpu_max(const std::string& line) {
  const std::size_t space = line.find(' ');
  if (space == std::string::npos) return std::nullopt;
  const auto quota = parse_number(std::string_view(line).substr(0, space));
  const auto period = parse_number(std::string_view(line).substr(space + 1));
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return *quota / *period;
}

std::optional<double> cgroup_cpu_quota() {
  // The quota of every ancestor applies; the smallest wins.
  std::optional<double> smallest;
  for (const std::string& line : cgroup_lines("cpu.max")) {
    const auto quota = parse_cpu_max(line);
    if (quota && (!smallest || *quota < *smallest)) smallest = quota;
  }
  const auto quota_us = parse_number(first_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"));
  const auto period_us = parse_number(first_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us"));
  if (quota_us && period_us && *quota_us > 0 && *period_us > 0) {
    const double quota = *quota_us / *period_us;
    if (!smallest || quota < *smallest) smallest = quota;
  }
  return smallest;
}

std::size_t usable_threads() {
  const std::size_t cpus = affinity_cpus();
  const auto quota = cgroup_cpu_quota();
  if (!quota) return cpus;
  return std::clamp<std::size_t>(static_cast<std::size_t>(*quota), 1, cpus);
}

}  // namespace cicada::platform
