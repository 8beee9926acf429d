#include "cicada/ipc/outbox.h"

#include <algorithm>
#include <span>
#include <utility>

#include "cicada/base/check.h"
#include "cicada/platform/local_socket.h"

namespace cicada::ipc {
namespace {

// Written between two looks at the books.
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
// Kept from a burst for what comes.
constexpr std::size_t kMostKeptBytes = std::size_t{1} << 20;

}  // namespace

Result<void> Outbox::append(const Encode& encode) {
  const std::scoped_lock lock(mutex_);
  if (broken_) return fail(*broken_);
  const bool is_free = waiting_.empty() && in_writing_bytes_ == 0;
  const std::size_t before = waiting_.size();
  if (auto encoded = encode(waiting_); !encoded) {
    waiting_.resize(before);
    return fail(std::move(encoded).error());
  }
  if (is_free) CICADA_TRY(write_what_fits());
  if (waiting_.size() + in_writing_bytes_ > max_unsent_bytes_) {
    return break_off_locked(Error(
        Code::kOverloaded, fmt::format("the other process does not read: more than {} bytes wait",
                                       max_unsent_bytes_)));
  }
  if (!waiting_.empty()) has_work_.notify_one();
  return {};
}

Result<void> Outbox::write_what_fits() {
  if (waiting_.empty()) return {};
  auto written = platform::write_now(socket_, waiting_);
  if (!written) return break_off_locked(std::move(written).error());
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(*written));
  return {};
}

void Outbox::run() noexcept {
  std::vector<std::byte> taken;
  std::unique_lock lock(mutex_);
  while (true) {
    has_work_.wait(lock, [this] { return broken_ || !waiting_.empty(); });
    if (broken_) return;
    if (taken.capacity() > kMostKeptBytes) taken = {};
    taken.clear();
    taken.swap(waiting_);
    in_writing_bytes_ = taken.size();
    std::span<const std::byte> left = taken;
    while (!left.empty() && !broken_) {
      const auto piece = left.first(std::min(left.size(), kPieceBytes));
      lock.unlock();
      auto written = platform::write_all(socket_, piece);
      lock.lock();
      left = left.subspan(piece.size());
      in_writing_bytes_ = left.size();
      if (!written) break_off_locked(std::move(written).error());
    }
  }
}

void Outbox::break_off(Error reason) {
  const std::scoped_lock lock(mutex_);
  break_off_locked(std::move(reason));
}

Error Outbox::reason() {
  const std::scoped_lock lock(mutex_);
  CICADA_CHECK(broken_.has_value(), "asked after the end");
  return *broken_;
}

tl::unexpected<Error> Outbox::break_off_locked(Error reason) {
  if (broken_) return fail(*broken_);
  broken_ = std::move(reason);
  waiting_ = {};
  platform::shut_down(socket_);
  has_work_.notify_one();
  return fail(*broken_);
}

}  // namespace cicada::ipc
