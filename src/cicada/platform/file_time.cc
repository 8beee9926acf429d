#include "cicada/platform/file_time.h"

#include <sys/stat.h>

namespace cicada::platform {

std::int64_t modified_unix_s(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? std::int64_t{info.st_mtim.tv_sec} : 0;
}

}  // namespace cicada::platform
