#include "cicada/platform/local_socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <thread>
#include <vector>

#include "cicada/platform/pipe.h"

namespace cicada::platform {
namespace {

TEST(LocalSocket, BytesArriveAndTheEndIsZeroBytes) {
  auto pair = make_socket_pair();
  ASSERT_TRUE(pair);
  const std::array<std::byte, 3> sent = {std::byte{1}, std::byte{0}, std::byte{255}};
  ASSERT_TRUE(write_all(pair->first, sent));
  pair->first.close();
  std::array<std::byte, 8> got{};
  EXPECT_EQ(read_some(pair->second, got).value_or(99), 3U);
  EXPECT_TRUE(std::equal(sent.begin(), sent.end(), got.begin()));
  EXPECT_EQ(read_some(pair->second, got).value_or(99), 0U);
}

TEST(LocalSocket, NeitherEndIsInherited) {
  const auto pair = make_socket_pair();
  ASSERT_TRUE(pair);
  EXPECT_EQ(::fcntl(pair->first.get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  EXPECT_EQ(::fcntl(pair->second.get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

TEST(LocalSocket, WriteToAClosedPeerIsAnErrorAndNoSignal) {
  auto pair = make_socket_pair();
  ASSERT_TRUE(pair);
  pair->second.close();
  const std::array<std::byte, 1> byte{};
  const auto all = write_all(pair->first, byte);
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().code(), Code::kIo);
  EXPECT_FALSE(write_now(pair->first, byte));
}

TEST(LocalSocket, WriteNowTakesWhatFitsAndNeverWaits) {
  const auto pair = make_socket_pair();
  ASSERT_TRUE(pair);
  const std::vector<std::byte> much(std::size_t{8} << 20);
  const auto first = write_now(pair->first, much);
  ASSERT_TRUE(first);
  EXPECT_GT(*first, 0U);
  EXPECT_LT(*first, much.size());
  EXPECT_EQ(write_now(pair->first, much).value_or(99), 0U);
}

TEST(LocalSocket, ShutDownWakesReaderAndWriter) {
  for (const bool non_blocking : {false, true}) {
    const auto pair = make_socket_pair();
    ASSERT_TRUE(pair);
    if (non_blocking) {
      ASSERT_EQ(::fcntl(pair->first.get(), F_SETFL, O_NONBLOCK), 0);
    }
    bool is_write_refused = false;
    std::size_t got = 99;
    std::thread writer([&] {
      const std::vector<std::byte> much(std::size_t{8} << 20);
      is_write_refused = !write_all(pair->first, much).has_value();
    });
    std::thread reader([&] {
      std::array<std::byte, 8> bytes{};
      got = read_some(pair->first, bytes).value_or(99);
    });
    shut_down(pair->first);
    writer.join();
    reader.join();
    EXPECT_TRUE(is_write_refused);
    EXPECT_EQ(got, 0U);
  }
}

TEST(LocalSocket, OnlyAConnectedLocalSocketIsAdopted) {
  auto pair = make_socket_pair();
  ASSERT_TRUE(pair);
  const int handed_over = ::fcntl(pair->first.get(), F_DUPFD, 0);  // not marked, as after an exec
  const auto adopted = adopt_local_socket(handed_over);
  ASSERT_TRUE(adopted);
  EXPECT_EQ(::fcntl(adopted->get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);

  const auto pipe = make_pipe();
  ASSERT_TRUE(pipe);
  const Fd lonely(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const Fd remote(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  for (const int fd : {pipe->read_end.get(), lonely.get(), remote.get(), -1, 1 << 20}) {
    const auto refused = adopt_local_socket(fd);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace cicada::platform
