#include "cicada/platform/cgroup.h"

#include <fmt/format.h>

#include <fstream>

namespace cicada::platform {
namespace {

// This process's group in one hierarchy ("/user.slice/..."), empty when it is in none. Lines of
// /proc/self/cgroup are "number:controllers:path"; version 2 has no controllers.
std::string group_path(const std::string& membership, std::string_view controller) {
  const std::string wanted = fmt::format(",{},", controller);  // ",," for version 2
  std::ifstream file(membership);
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    if (names.find(wanted) != std::string::npos) return line.substr(second + 1);
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

std::vector<std::string> cgroup_folders(std::string_view controller, const CgroupPlaces& places) {
  const std::string root =
      controller.empty() ? places.root : fmt::format("{}/{}", places.root, controller);
  std::string path = group_path(places.membership, controller);
  std::vector<std::string> folders;
  while (true) {
    folders.push_back(root + path);
    if (path.empty() || path == "/") return folders;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

}  // namespace cicada::platform
