// Connected stream sockets between processes of one machine: the calls, nothing of what they carry.
// A peer that is gone is an error of the write, never a signal.
// Threads: one may read while another writes; shut_down() from any.
#pragma once

#include <cstddef>
#include <span>

#include "cicada/base/result.h"
#include "cicada/platform/fd.h"

namespace cicada::platform {

// The two ends of a connection; neither is inherited unless it is handed over on purpose.
struct SocketPair {
  Fd first;
  Fd second;
};

// Errors: kIo.
Result<SocketPair> make_socket_pair();

// Takes ownership of an inherited descriptor, which then is not inherited any further.
// Errors: kInvalidArgument when it is no connected local stream socket; it is left alone then.
Result<Fd> adopt_local_socket(int fd);

// Waits for bytes and reads what is there, 1 to bytes.size(), which is not 0. The number of bytes
// read; 0 when the other side, or shut_down(), ended the stream. Errors: kIo.
Result<std::size_t> read_some(const Fd& socket, std::span<std::byte> bytes);

// Waits until all are written. Errors: kIo.
Result<void> write_all(const Fd& socket, std::span<const std::byte> bytes);

// Writes as many as can be taken without waiting, often none, and says how many. Errors: kIo.
Result<std::size_t> write_now(const Fd& socket, std::span<const std::byte> bytes);

// Ends both directions: whoever waits in read_some() or write_all() on either side returns. Bytes
// that were received before can still be read.
void shut_down(const Fd& socket);

}  // namespace cicada::platform
