#include "cicada/platform/topology.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "cicada/platform/cgroup.h"

namespace cicada::platform {
namespace {

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<double> quota_v1(const std::string& folder) {
  const auto quota_us = parse_number(first_line(folder + "/cpu.cfs_quota_us"));
  const auto period_us = parse_number(first_line(folder + "/cpu.cfs_period_us"));
  if (!quota_us || !period_us || *quota_us <= 0 || *period_us <= 0) return std::nullopt;
  return *quota_us / *period_us;
}

std::optional<double> quota_v2(const std::string& folder) {
  return parse_cpu_max(first_line(folder + "/cpu.max"));
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

// The quota of every group above applies too: the smallest wins.
std::optional<double> cgroup_cpu_quota(const CgroupPlaces& places) {
  std::optional<double> smallest;
  const auto take = [&smallest](std::optional<double> quota) {
    if (quota && (!smallest || *quota < *smallest)) smallest = quota;
  };
  for (const std::string& folder : cgroup_folders("", places)) take(quota_v2(folder));
  for (const std::string& folder : cgroup_folders("cpu", places)) take(quota_v1(folder));
  return smallest;
}

std::size_t usable_threads(std::size_t cpus, std::optional<double> quota) {
  if (!quota || *quota >= static_cast<double>(cpus)) return cpus;
  return std::max<std::size_t>(static_cast<std::size_t>(*quota), 1);
}

std::size_t usable_threads() { return usable_threads(affinity_cpus(), cgroup_cpu_quota()); }

}  // namespace cicada::platform
