// What a process uses, as the kernel counts it.
// Threads: callable from several threads; reads /proc each time.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "cicada/base/result.h"

namespace cicada::platform {

struct ProcessStats {
  double cpu_seconds = 0;  // user and system, of all its threads
  std::uint64_t resident_bytes = 0;
  std::uint64_t virtual_bytes = 0;
  std::uint64_t open_fds = 0;
  std::uint64_t max_fds = 0;      // it may have open
  double start_time_seconds = 0;  // since 1970
};

// Of a process of this user. Errors: kNotFound when there is none of this number, kIo.
Result<ProcessStats> process_stats(int pid);
// Of this process.
Result<ProcessStats> process_stats();

// The numbers of a text in the form of /proc/PID/stat; times in ticks of the system's clock.
struct StatLine {
  std::uint64_t user_ticks = 0;
  std::uint64_t system_ticks = 0;
  std::uint64_t start_ticks = 0;  // since the system started
  std::uint64_t virtual_bytes = 0;
  std::uint64_t resident_pages = 0;

  bool operator==(const StatLine&) const = default;
};
// Nothing when the text has another form.
std::optional<StatLine> parse_stat_line(std::string_view text);

}  // namespace cicada::platform
