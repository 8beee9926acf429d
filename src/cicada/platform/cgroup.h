// What the control groups of this process say. Source: the kernel's cgroup-v2 documentation.
#pragma once

#include <string>
#include <vector>

namespace cicada::platform {

// The first line of `file` ("cpu.max") in the group of this process and in every group above it,
// the own first; groups without such a file are left out, and without cgroup v2 there are none.
std::vector<std::string> cgroup_lines(const std::string& file);

// The first line of any file, without its end; empty when it cannot be read.
std::string first_line(const std::string& path);

}  // namespace cicada::platform
