// The sending half of a channel: bytes that go out in the order in which they were put in. Internal
// to ipc.
// Threads: append() and break_off() from any; run() on a thread of its own.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "cicada/base/error.h"
#include "cicada/base/result.h"
#include "cicada/platform/fd.h"

namespace cicada::ipc {

class Outbox {
 public:
  // The socket is borrowed.
  Outbox(const platform::Fd& socket, std::size_t max_unsent_bytes)
      : socket_(socket), max_unsent_bytes_(max_unsent_bytes) {}

  // `encode` appends to the bytes that it gets, or fails; then nothing was appended. Whoever finds
  // the socket free writes at once, which spares the wake of a thread for each message; what it
  // does not take, and what comes while it is busy, is written by run() in as few calls as can be.
  // Errors: those of `encode`; why the outbox is broken.
  using Encode = std::function<Result<void>(std::vector<std::byte>& out)>;
  Result<void> append(const Encode& encode);

  // Writes until break_off().
  void run() noexcept;

  // Ends it, and the socket's use by both sides, with a reason, of which the first stays.
  void break_off(Error reason);
  // That reason; only after break_off().
  Error reason();

 private:
  Result<void> write_what_fits();
  // As a failure: the reason that stays.
  tl::unexpected<Error> break_off_locked(Error reason);

  const platform::Fd& socket_;
  const std::size_t max_unsent_bytes_;

  std::mutex mutex_;  // guards what follows
  std::condition_variable has_work_;
  std::vector<std::byte> waiting_;    // what run() has not taken
  std::size_t in_writing_bytes_ = 0;  // what it has taken and not written
  std::optional<Error> broken_;
};

}  // namespace cicada::ipc
