// How many threads this process may really use.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "cicada/platform/cgroup.h"

namespace cicada::platform {

// CPUs in this thread's affinity mask; at least 1.
std::size_t affinity_cpus();

// CPUs that the cgroup quota allows (v2 `cpu.max`, v1 `cpu.cfs_quota_us`), e.g. 0.5; nothing when
// there is no quota. The smallest of this process's group and all groups above it.
std::optional<double> cgroup_cpu_quota(const CgroupPlaces& places = {});

// Parses a cgroup v2 cpu.max line ("50000 100000", "max 100000").
std::optional<double> parse_cpu_max(const std::string& line);

// min(cpus, quota rounded down), at least 1; of this process where nothing is given.
std::size_t usable_threads(std::size_t cpus, std::optional<double> quota);
std::size_t usable_threads();

}  // namespace cicada::platform
