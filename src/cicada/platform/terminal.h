// What is known of the terminal behind a descriptor, and a progress line.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace cicada::platform {

bool is_terminal(int fd);

// Columns of the terminal; 80 when they cannot be known.
int terminal_columns(int fd);

// True when colour codes are welcome: a terminal, not TERM=dumb, and NO_COLOR unset or empty.
bool colours_wanted(int fd);

// "98.4 MB", "1.1 GB": decimal units, one digit after the point from a kilobyte on.
std::string format_bytes(unsigned long long bytes);

// One line that is rewritten in place. On anything but a terminal it writes nothing, so logs and
// pipes stay clean.
// Threads: one thread only.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  // fd: borrowed, stays open while the object lives.
  explicit Progress(int fd) : fd_(fd), shown_(is_terminal(fd)) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  // Shows `text`, cut to the width of the terminal. At most ten updates a second reach it; the ones
  // between are dropped.
  void update(std::string_view text, Clock::time_point now = Clock::now());

  // Wipes the line, so that ordinary output can follow.
  void clear();

 private:
  void put(std::string_view bytes) const;

  const int fd_;
  const bool shown_;
  bool on_screen_ = false;
  std::optional<Clock::time_point> last_update_;
};

}  // namespace cicada::platform
