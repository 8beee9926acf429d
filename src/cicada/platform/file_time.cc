#include "cicada/platform/file_time.h"

#include <fmt/format.h>
#include <sys/stat.h>

namespace cicada::platform {

std::int64_t modified_unix_s(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? std::int64_t{info.st_mtim.tv_sec} : 0;
}

std::string file_version(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return "none";
  return fmt::format("{:x}.{:x}.{:x}.{:x}.{:x}", info.st_dev, info.st_ino, info.st_size,
                     info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

}  // namespace cicada::platform
