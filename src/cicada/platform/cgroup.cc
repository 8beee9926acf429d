#include "cicada/platform/cgroup.h"

#include <fmt/format.h>

#include <fstream>

namespace cicada::platform {
namespace {

// The path of this process in the hierarchy ("/user.slice/..."), empty when there is none.
std::string cgroup_path() {
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("0::")) return line.substr(3);
  }
  return {};
}

}  // namespace

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::vector<std::string> cgroup_lines(const std::string& file) {
  std::vector<std::string> lines;
  std::string path = cgroup_path();
  while (true) {
    std::string line = first_line(fmt::format("/sys/fs/cgroup{}/{}", path, file));
    if (!line.empty()) lines.push_back(std::move(line));
    if (path.empty() || path == "/") return lines;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

}  // namespace cicada::platform
