// Messages over a connected local stream socket, in order, each way on a thread of its own.
// Threads: send() from any; callbacks come from the channel's reading thread, one at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cicada/base/error.h"
#include "cicada/base/result.h"
#include "cicada/messages/messages.h"
#include "cicada/platform/fd.h"

namespace cicada::ipc {

struct ChannelLimits {
  // Waiting for a reader that does not read; with more the channel counts as broken.
  std::size_t max_unsent_bytes = std::size_t{256} << 20;
};

// One side of a connection that receives Incoming and sends Outgoing.
template <typename Incoming, typename Outgoing>
class Channel {
 public:
  struct Callbacks {
    // Messages arrived: one or more, as they came together. While it runs nothing more is read, so
    // the other side's messages wait.
    std::function<void(std::vector<Incoming>)> on_messages;
    // The last call: why no more can come. kIo when the other side closed the connection or is
    // gone, also in the middle of a message; kCorrupt for bytes that are none; kOverloaded when
    // it did not read. What it sent before is delivered first. Not called when the channel is
    // destroyed before.
    std::function<void(const Error&)> on_closed;
  };

  // Both callbacks may be called before this returns; they must not throw, nor destroy the channel.
  // Errors: kIo when the system gives no threads.
  static Result<std::unique_ptr<Channel>> open(platform::Fd socket, Callbacks callbacks,
                                               ChannelLimits limits = {});

  virtual ~Channel() = default;  // closes; afterwards no callback runs. What was not sent is lost

  // Never waits: what the socket does not take at once is sent by another thread. Messages of one
  // call arrive behind those of calls that returned before.
  // Errors: kOutOfCapacity when a message is too long to be sent, which sends none of the call's;
  // kIo, kOverloaded when the channel is broken: on_closed says so, too.
  virtual Result<void> send(std::span<const Outgoing> messages) = 0;
  Result<void> send(const Outgoing& message) { return send(std::span(&message, 1)); }
};

using EngineSide = Channel<messages::ToEngine, messages::ToFront>;
using FrontSide = Channel<messages::ToFront, messages::ToEngine>;

extern template class Channel<messages::ToEngine, messages::ToFront>;
extern template class Channel<messages::ToFront, messages::ToEngine>;

}  // namespace cicada::ipc
