#include "cicada/ipc/channel.h"

#include <atomic>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "cicada/ipc/codec.h"
#include "cicada/ipc/frame_buffer.h"
#include "cicada/ipc/outbox.h"
#include "cicada/platform/local_socket.h"

namespace cicada::ipc {
namespace {

template <typename Incoming, typename Outgoing>
class SocketChannel final : public Channel<Incoming, Outgoing> {
 public:
  using Callbacks = typename Channel<Incoming, Outgoing>::Callbacks;

  SocketChannel(platform::Fd socket, Callbacks callbacks, ChannelLimits limits)
      : socket_(std::move(socket)),
        callbacks_(std::move(callbacks)),
        outbox_(socket_, limits.max_unsent_bytes) {}

  ~SocketChannel() override {
    is_destroyed_.store(true, std::memory_order_relaxed);
    outbox_.break_off(Error(Code::kCancelled, "the channel was closed"));
    if (writer_.joinable()) writer_.join();
    if (reader_.joinable()) reader_.join();
  }

  Result<void> start() {
    try {
      writer_ = std::thread([this]() noexcept { outbox_.run(); });
      reader_ = std::thread([this]() noexcept { read(); });
    } catch (const std::system_error& error) {  // the only way in which std::thread says so
      return fail(Code::kIo, "no thread for a channel: {}", error.code().message());
    }
    return {};
  }

  Result<void> send(std::span<const Outgoing> messages) override {
    return outbox_.append([messages](std::vector<std::byte>& out) -> Result<void> {
      for (const Outgoing& message : messages) CICADA_TRY(encode(message, out));
      return {};
    });
  }

 private:
  // The reading thread.
  void read() noexcept {
    outbox_.break_off(deliver());
    if (!is_destroyed()) callbacks_.on_closed(outbox_.reason());
  }

  // Hands messages over until there are no more; returns why.
  Error deliver() {
    FrameBuffer frames;
    while (true) {
      auto got = platform::read_some(socket_, frames.room());
      if (!got) return std::move(got).error();
      if (*got == 0) {
        return Error(Code::kIo, frames.is_empty()
                                    ? "the other process closed the connection"
                                    : "the other process is gone in the middle of a message");
      }
      frames.add(*got);
      if (auto delivered = deliver_whole(frames); !delivered) return std::move(delivered).error();
    }
  }

  // Hands over what is whole; also what came before something that is corrupt.
  Result<void> deliver_whole(FrameBuffer& frames) {
    std::vector<Incoming> messages;
    Result<void> decoded = decode_whole(frames, messages);
    if (is_destroyed()) return fail(Code::kCancelled, "the channel was closed");
    if (!messages.empty()) callbacks_.on_messages(std::move(messages));
    return decoded;
  }

  static Result<void> decode_whole(FrameBuffer& frames, std::vector<Incoming>& messages) {
    while (true) {
      CICADA_ASSIGN(const auto payload, frames.next());
      if (!payload) return {};
      CICADA_ASSIGN(Incoming message, decode<Incoming>(*payload));
      messages.push_back(std::move(message));
    }
  }

  // Relaxed order suffices: it carries no data, and the destructor joins the threads.
  bool is_destroyed() const { return is_destroyed_.load(std::memory_order_relaxed); }

  const platform::Fd socket_;
  const Callbacks callbacks_;
  Outbox outbox_;
  std::atomic<bool> is_destroyed_{false};
  std::thread writer_;
  std::thread reader_;
};

}  // namespace

template <typename Incoming, typename Outgoing>
Result<std::unique_ptr<Channel<Incoming, Outgoing>>> Channel<Incoming, Outgoing>::open(
    platform::Fd socket, Callbacks callbacks, ChannelLimits limits) {
  auto channel = std::make_unique<SocketChannel<Incoming, Outgoing>>(std::move(socket),
                                                                     std::move(callbacks), limits);
  CICADA_TRY(channel->start());
  return std::unique_ptr<Channel>(std::move(channel));
}

template class Channel<messages::ToEngine, messages::ToFront>;
template class Channel<messages::ToFront, messages::ToEngine>;

}  // namespace cicada::ipc
