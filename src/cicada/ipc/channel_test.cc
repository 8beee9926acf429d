#include "cicada/ipc/channel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cicada/ipc/codec.h"
#include "cicada/ipc/messages_for_test.h"
#include "cicada/platform/local_socket.h"

namespace cicada::ipc {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kLong{10};

// Keeps what a channel says, and waits for it.
template <typename Incoming>
class Ear {
 public:
  template <typename Side>
  typename Side::Callbacks callbacks() {
    return {.on_messages =
                [this](std::vector<Incoming> messages) {
                  const std::scoped_lock lock(mutex_);
                  for (Incoming& message : messages) received_.push_back(std::move(message));
                  changed_.notify_all();
                },
            .on_closed =
                [this](const Error& reason) {
                  const std::scoped_lock lock(mutex_);
                  ++num_closed_;
                  reason_ = reason;
                  changed_.notify_all();
                }};
  }
  std::vector<Incoming> wait_for_messages(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kLong, [&] { return received_.size() >= count; });
    return received_;
  }
  // Why the channel was closed; kInternal when it was not.
  Error wait_for_close() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kLong, [&] { return reason_.has_value(); });
    return reason_.value_or(Error(Code::kInternal, "still open"));
  }
  int num_closed() {
    const std::scoped_lock lock(mutex_);
    return num_closed_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Incoming> received_;
  std::optional<Error> reason_;
  int num_closed_ = 0;
};

struct Front {
  Ear<messages::ToFront> ear;
  std::unique_ptr<FrontSide> channel;
};

struct Engine {
  Ear<messages::ToEngine> ear;
  std::unique_ptr<EngineSide> channel;
};

class ChannelTest : public testing::Test {
 protected:
  void SetUp() override {
    auto pair = platform::make_socket_pair();
    ASSERT_TRUE(pair);
    sockets_ = std::move(*pair);
  }
  void open_front(ChannelLimits limits = {}) {
    auto channel =
        FrontSide::open(std::move(sockets_.first), front_.ear.callbacks<FrontSide>(), limits);
    ASSERT_TRUE(channel) << channel.error().to_string();
    front_.channel = std::move(*channel);
  }
  void open_engine() {
    auto channel =
        EngineSide::open(std::move(sockets_.second), engine_.ear.callbacks<EngineSide>());
    ASSERT_TRUE(channel) << channel.error().to_string();
    engine_.channel = std::move(*channel);
  }

  platform::SocketPair sockets_;
  Front front_;
  Engine engine_;
};

messages::ToEngine submit_of(std::size_t num_tokens) {
  messages::Submit submit;
  submit.prompt.resize(num_tokens);
  return submit;
}

TEST_F(ChannelTest, MessagesOfEveryKindArriveInOrderBothWays) {
  open_front();
  open_engine();
  const auto to_engine = to_engine_examples();
  const auto to_front = to_front_examples();
  ASSERT_TRUE(front_.channel->send(to_engine));
  for (const auto& message : to_front) ASSERT_TRUE(engine_.channel->send(message));
  EXPECT_EQ(engine_.ear.wait_for_messages(to_engine.size()), to_engine);
  EXPECT_EQ(front_.ear.wait_for_messages(to_front.size()), to_front);
}

TEST_F(ChannelTest, LongAndShortMessagesKeepTheirOrderUnderLoad) {
  open_front();
  open_engine();
  std::vector<messages::ToEngine> sent;
  for (std::size_t i = 0; i < 300; ++i) {
    sent.push_back(i % 50 == 7 ? submit_of(100'000) : messages::Cancel{i});
  }
  for (const auto& message : sent) ASSERT_TRUE(front_.channel->send(message));
  EXPECT_EQ(engine_.ear.wait_for_messages(sent.size()), sent);
}

TEST_F(ChannelTest, SeveralThreadsMaySend) {
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kEach = 200;
  open_front();
  open_engine();
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      for (std::uint64_t i = 0; i < kEach; ++i) {
        EXPECT_TRUE(front_.channel->send(messages::Cancel{t * kEach + i}));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::uint64_t> next(kThreads);  // each thread's messages are in order
  for (const auto& message : engine_.ear.wait_for_messages(kThreads * kEach)) {
    const std::uint64_t id = std::get<messages::Cancel>(message).id;
    EXPECT_EQ(id % kEach, next.at(id / kEach)++);
  }
  EXPECT_EQ(next, std::vector<std::uint64_t>(kThreads, kEach));
}

// Neither side sleeps or polls: the fastest of several round trips tells, as others may use the
// processor meanwhile.
TEST_F(ChannelTest, ShortMessageArrivesAtOnce) {
  open_front();
  std::atomic<EngineSide*> target{nullptr};
  auto opened = EngineSide::open(std::move(sockets_.second),
                                 {.on_messages =
                                      [&](const std::vector<messages::ToEngine>&) {
                                        EngineSide* const side = target.load();
                                        if (side != nullptr) {
                                          EXPECT_TRUE(side->send(messages::Started{}));
                                        }
                                      },
                                  .on_closed = [](const Error&) {}});
  ASSERT_TRUE(opened);
  target = opened->get();
  Clock::duration best = kLong;
  for (std::size_t i = 1; i <= 50; ++i) {
    const auto begin = Clock::now();
    ASSERT_TRUE(front_.channel->send(messages::Cancel{i}));
    ASSERT_EQ(front_.ear.wait_for_messages(i).size(), i);
    best = std::min(best, Clock::now() - begin);
  }
  RecordProperty("best_round_trip_us",
                 std::to_string(std::chrono::duration<double, std::micro>(best).count()));
  EXPECT_LT(best, std::chrono::milliseconds(1));
}

TEST_F(ChannelTest, SendDoesNotWaitForAReader) {
  open_front();  // nobody reads the other end
  const auto begin = Clock::now();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(front_.channel->send(submit_of(100'000)));
  EXPECT_LT(Clock::now() - begin, kLong);
  open_engine();
  EXPECT_EQ(engine_.ear.wait_for_messages(20).size(), 20U);
}

TEST_F(ChannelTest, TooMuchUnsentBreaksIt) {
  open_front({.max_unsent_bytes = std::size_t{4} << 20});
  std::optional<Error> refused;
  for (int i = 0; i < 200 && !refused; ++i) {
    if (auto sent = front_.channel->send(submit_of(25'000)); !sent) {
      refused = std::move(sent).error();
    }
  }
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code(), Code::kOverloaded);
  EXPECT_EQ(front_.ear.wait_for_close().code(), Code::kOverloaded);
  EXPECT_FALSE(front_.channel->send(messages::Cancel{1}));
}

TEST_F(ChannelTest, TooLongMessageSendsNoneOfItsCallAndTheNextArrives) {
  open_front();
  open_engine();
  const std::array<messages::ToEngine, 2> sent = {messages::Cancel{1}, submit_of(17'000'000)};
  const auto refused = front_.channel->send(sent);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kOutOfCapacity);
  ASSERT_TRUE(front_.channel->send(messages::Cancel{2}));
  const std::vector<messages::ToEngine> expected = {messages::Cancel{2}};
  EXPECT_EQ(engine_.ear.wait_for_messages(1), expected);
}

TEST_F(ChannelTest, WhatWasSentBeforeTheEndIsDeliveredAndTheEndSaidOnce) {
  open_engine();
  std::vector<messages::ToFront> sent;
  for (std::uint64_t i = 0; i < 100; ++i) sent.emplace_back(messages::Started{i});
  ASSERT_TRUE(engine_.channel->send(sent));
  engine_.channel.reset();
  open_front();
  EXPECT_EQ(front_.ear.wait_for_close().code(), Code::kIo);
  EXPECT_EQ(front_.ear.wait_for_messages(0), sent);
  EXPECT_FALSE(front_.channel->send(messages::Cancel{1}));
  front_.channel.reset();
  EXPECT_EQ(front_.ear.num_closed(), 1);
  EXPECT_EQ(engine_.ear.num_closed(), 0) << "the side that closes is not told";
}

TEST_F(ChannelTest, EndInTheMiddleOfAMessageIsSaid) {
  open_front();
  std::vector<std::byte> frame;
  ASSERT_TRUE(encode(messages::ToFront(messages::Started{}), frame));
  ASSERT_TRUE(platform::write_all(sockets_.second, std::span(frame).first(frame.size() - 1)));
  sockets_.second.close();
  const Error reason = front_.ear.wait_for_close();
  EXPECT_EQ(reason.code(), Code::kIo);
  EXPECT_NE(reason.message().find("middle"), std::string::npos) << reason.message();
}

TEST_F(ChannelTest, CorruptFrameClosesItBehindWhatCameBefore) {
  open_front();
  std::vector<std::byte> stream;
  ASSERT_TRUE(encode(messages::ToFront(messages::Started{1}), stream));
  ASSERT_TRUE(encode(messages::ToEngine(messages::Cancel{2}), stream));  // of the other direction
  ASSERT_TRUE(encode(messages::ToFront(messages::Started{3}), stream));
  ASSERT_TRUE(platform::write_all(sockets_.second, stream));
  EXPECT_EQ(front_.ear.wait_for_close().code(), Code::kCorrupt);
  const std::vector<messages::ToFront> expected = {messages::Started{1}};
  EXPECT_EQ(front_.ear.wait_for_messages(0), expected);
  std::array<std::byte, 1> byte{};
  EXPECT_EQ(platform::read_some(sockets_.second, byte).value_or(99), 0U) << "the peer is told";
}

TEST_F(ChannelTest, DestructorEndsWaitingThreadsAtOnce) {
  open_front();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(front_.channel->send(submit_of(100'000)));
  const auto begin = Clock::now();
  front_.channel.reset();  // one thread waits for bytes, one for room
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(2));
  EXPECT_EQ(front_.ear.num_closed(), 0);
}

TEST_F(ChannelTest, CallbackMaySend) {
  std::atomic<FrontSide*> front{nullptr};
  auto opened = FrontSide::open(std::move(sockets_.first),
                                {.on_messages =
                                     [&](const std::vector<messages::ToFront>&) {
                                       while (front.load() == nullptr) std::this_thread::yield();
                                       EXPECT_TRUE(front.load()->send(messages::Cancel{8}));
                                     },
                                 .on_closed = [](const Error&) {}});
  ASSERT_TRUE(opened);
  front = opened->get();
  open_engine();
  ASSERT_TRUE(engine_.channel->send(messages::Started{}));
  const std::vector<messages::ToEngine> expected = {messages::Cancel{8}};
  EXPECT_EQ(engine_.ear.wait_for_messages(1), expected);
}

}  // namespace
}  // namespace cicada::ipc
