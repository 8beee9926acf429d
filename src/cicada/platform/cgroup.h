// The control groups of this process. Sources: the kernel's documentation of cgroups version 1
// and 2.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cicada::platform {

// Where the kernel tells of groups; tests make up their own.
struct CgroupPlaces {
  std::string root = "/sys/fs/cgroup";
  std::string membership = "/proc/self/cgroup";
};

// Folders of this process's group and of every group above it, the own first and the root's last.
// Of version 2 for an empty controller; of version 1 for a controller's name ("cpu", "memory"). In
// a container the path may be the host's, of which nothing but the root is there: folders may not
// exist.
std::vector<std::string> cgroup_folders(std::string_view controller,
                                        const CgroupPlaces& places = {});

// The first line of a file, without its end; empty when it cannot be read.
std::string first_line(const std::string& path);

}  // namespace cicada::platform
