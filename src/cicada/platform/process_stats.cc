#include "cicada/platform/process_stats.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include "cicada/base/text.h"
#include "cicada/platform/file.h"
#include "cicada/platform/system_words.h"

namespace cicada::platform {
namespace {

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{4} << 20;  // /proc/stat of a large machine

// When the system started, in seconds since 1970.
Result<double> boot_time() {
  constexpr std::string_view kKey = "\nbtime ";
  CICADA_ASSIGN(const std::string text, read_file("/proc/stat", kMaxFileBytes));
  const std::size_t at = text.find(kKey);
  if (at != std::string::npos) {
    std::string_view rest = std::string_view(text).substr(at + kKey.size());
    if (const auto seconds = whole_text_number<std::uint64_t>(take_until(rest, '\n'))) {
      return static_cast<double>(*seconds);
    }
  }
  return fail(Code::kIo, "/proc/stat: does not say when the system started");
}

// The directory's own descriptor, which is open while it is read, is not counted for ourselves.
Result<std::uint64_t> count_open_fds(const std::string& folder, bool is_own) {
  std::error_code error;
  std::uint64_t count = 0;
  std::filesystem::directory_iterator entry(folder, error);
  while (!error && entry != std::filesystem::directory_iterator()) {
    ++count;
    entry.increment(error);
  }
  if (error) return fail(Code::kIo, "{}: {}", folder, error.message());
  return is_own && count > 0 ? count - 1 : count;
}

Result<ProcessStats> stats_in(const std::string& folder, int pid, bool is_own) {
  CICADA_ASSIGN(const std::string text, read_file(folder + "/stat", kMaxFileBytes));
  const auto line = parse_stat_line(text);
  if (!line) return fail(Code::kIo, "{}/stat: has another form than was expected", folder);
  CICADA_ASSIGN(const double boot, boot_time());
  ProcessStats stats;
  const double ticks_a_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  stats.cpu_seconds = static_cast<double>(line->user_ticks + line->system_ticks) / ticks_a_second;
  stats.start_time_seconds = boot + static_cast<double>(line->start_ticks) / ticks_a_second;
  stats.virtual_bytes = line->virtual_bytes;
  stats.resident_bytes = line->resident_pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  CICADA_ASSIGN(stats.open_fds, count_open_fds(folder + "/fd", is_own));
  struct rlimit limit {};
  if (::prlimit(pid, RLIMIT_NOFILE, nullptr, &limit) != 0) {
    return fail(Code::kIo, "process {}: {}", pid, system_words(errno));
  }
  stats.max_fds = limit.rlim_cur;
  return stats;
}

}  // namespace

std::optional<StatLine> parse_stat_line(std::string_view text) {
  // The second field is the program's name in brackets and may hold anything, brackets and spaces
  // too. Behind it come fields 3 and up of the manual's list, which counts from 1.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 > text.size()) return std::nullopt;
  std::string_view rest = text.substr(name_end + 2);
  StatLine line;
  for (int field = 3; field <= 24; ++field) {
    const auto number = whole_text_number<std::uint64_t>(take_until(rest, ' '));
    std::uint64_t* wanted = nullptr;
    if (field == 14) wanted = &line.user_ticks;
    if (field == 15) wanted = &line.system_ticks;
    if (field == 22) wanted = &line.start_ticks;
    if (field == 23) wanted = &line.virtual_bytes;
    if (field == 24) wanted = &line.resident_pages;
    if (wanted == nullptr) continue;
    if (!number) return std::nullopt;
    *wanted = *number;
  }
  return line;
}

Result<ProcessStats> process_stats(int pid) {
  return stats_in("/proc/" + std::to_string(pid), pid, pid == ::getpid());
}

Result<ProcessStats> process_stats() { return stats_in("/proc/self", ::getpid(), true); }

}  // namespace cicada::platform
