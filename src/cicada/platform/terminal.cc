#include "cicada/platform/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "cicada/platform/env.h"

namespace cicada::platform {
namespace {

constexpr int kDefaultColumns = 80;
constexpr std::chrono::milliseconds kUpdateInterval{100};

}  // namespace

bool is_terminal(int fd) { return ::isatty(fd) == 1; }

int terminal_columns(int fd) {
  struct winsize size {};
  if (::ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kDefaultColumns;
  return size.ws_col;
}

bool colours_wanted(int fd) {
  if (!is_terminal(fd)) return false;
  if (environment_variable("TERM") == "dumb") return false;
  return environment_variable("NO_COLOR").value_or("").empty();
}

std::string format_bytes(unsigned long long bytes) {
  constexpr std::array kUnits = {"kB", "MB", "GB", "TB"};
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1000.0;
  std::size_t unit_idx = 0;
  // 999.95 would be printed as 1000.0.
  while (value >= 999.95 && unit_idx + 1 < kUnits.size()) {
    value /= 1000.0;
    ++unit_idx;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit_idx]);
}

void Progress::update(std::string_view text, Clock::time_point now) {
  if (!shown_) return;
  if (last_update_ && now - *last_update_ < kUpdateInterval) return;
  last_update_ = now;
  // The last column stays free: a full line would wrap and could not be rewritten.
  const auto max_columns = static_cast<std::size_t>(terminal_columns(fd_)) - 1;
  put(fmt::format("\r{}\x1b[K", text.substr(0, max_columns)));
  on_screen_ = true;
}

void Progress::clear() {
  if (on_screen_) put("\r\x1b[K");
  on_screen_ = false;
  last_update_.reset();
}

void Progress::put(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // a progress line that cannot be shown is no error
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace cicada::platform
