#include "cicada/server/engine_hub.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cicada::server {
namespace {

using messages::RequestId;

// An engine that does what the test says.
class FakePort : public EnginePort {
 public:
  explicit FakePort(std::vector<messages::ToEngine>& sent) : sent_(&sent) {}
  void send(std::vector<messages::ToEngine> messages) override {
    for (messages::ToEngine& message : messages) sent_->push_back(std::move(message));
  }

 private:
  std::vector<messages::ToEngine>* sent_;
};

class Listener : public EngineListener {
 public:
  void on_started(const messages::Started&) override { said += "started "; }
  void on_token(const messages::Token& token) override {
    said += std::to_string(token.token.value) + " ";
  }
  void on_finished(const messages::Finished&) override { said += "finished "; }
  void on_failed(const messages::Failed& failed) override { said += "failed: " + failed.message; }
  void on_interrupted() override { said += "interrupted "; }

  std::string said;
};

class EngineHubTest : public testing::Test {
 protected:
  EngineHubTest()
      : hub_(loop_,
             [this](EngineEvents events) -> Result<std::unique_ptr<EnginePort>> {
               ++starts_;
               sent_.clear();
               events_ = std::move(events);
               if (!can_start_) return fail(Code::kIo, "no such program");
               return std::make_unique<FakePort>(sent_);
             },
             {.on_restart = [this](std::size_t replayed) { replayed_ = replayed; }}) {
    hub_.start([this] { ++readies_; },
               [this](const Error& error) { failure_ = error.to_string(); });
  }

  // Does what was posted, and timers that are due.
  void run() {
    const auto timer = loop_.after(std::chrono::milliseconds(2), [this] { loop_.stop(); });
    loop_.run();
  }
  void say(messages::ToFront message) {
    std::vector<messages::ToFront> list;
    list.push_back(std::move(message));
    events_.on_messages(std::move(list));
    run();
  }
  void die() {
    events_.on_closed("signal 9 ended it");
    run();
  }
  RequestId submit(Listener& listener) {
    const RequestId id = hub_.next_id();
    hub_.submit({.id = id, .prompt = {TokenId(1), TokenId(2)}}, listener);
    return id;
  }

  http::Loop loop_;
  bool can_start_ = true;
  int starts_ = 0;
  int readies_ = 0;
  std::size_t replayed_ = 0;
  std::string failure_;
  std::vector<messages::ToEngine> sent_;
  EngineEvents events_;
  EngineHub hub_;
};

TEST_F(EngineHubTest, IsReadyAtTheFirstHello) {
  EXPECT_FALSE(hub_.is_ready());
  say(messages::Hello{.numerics_id = "a"});
  EXPECT_TRUE(hub_.is_ready());
  EXPECT_EQ(readies_, 1);
}

TEST_F(EngineHubTest, AnEngineThatNeverWasReadyIsNoServer) {
  die();
  EXPECT_EQ(starts_, 1);
  EXPECT_NE(failure_.find("signal 9"), std::string::npos);
}

TEST_F(EngineHubTest, WhatRunsGoesOnInAnotherEngineFromWhereItWas) {
  say(messages::Hello{.numerics_id = "a"});
  Listener listener;
  const RequestId id = submit(listener);
  say(messages::Started{.id = id});
  say(messages::Token{.id = id, .token = TokenId(7)});
  say(messages::Token{.id = id, .token = TokenId(8)});
  hub_.pause(id, true);
  die();
  EXPECT_FALSE(hub_.is_ready());
  EXPECT_EQ(starts_, 2);
  Listener later;
  submit(later);  // meanwhile
  say(messages::Hello{.numerics_id = "a"});
  ASSERT_EQ(sent_.size(), 3U);
  const auto& again = std::get<messages::Submit>(sent_[0]);
  EXPECT_EQ(again.id, id);
  EXPECT_EQ(again.emitted, (std::vector{TokenId(7), TokenId(8)}));
  EXPECT_TRUE(std::get<messages::Pause>(sent_[1]).is_paused);
  EXPECT_TRUE(std::holds_alternative<messages::Submit>(sent_[2]));
  EXPECT_EQ(replayed_, 2U);
  say(messages::Token{.id = id, .token = TokenId(9)});
  say(messages::Finished{.id = id});
  EXPECT_EQ(listener.said, "started 7 8 interrupted 9 finished ");
  EXPECT_EQ(hub_.num_active(), 1U);
}

TEST_F(EngineHubTest, ACancelledRequestIsNotReplayedNorHeard) {
  say(messages::Hello{.numerics_id = "a"});
  Listener listener;
  const RequestId id = submit(listener);
  hub_.cancel(id);
  EXPECT_EQ(std::get<messages::Cancel>(sent_.back()).id, id);
  say(messages::Token{.id = id, .token = TokenId(7)});
  die();
  say(messages::Hello{.numerics_id = "a"});
  EXPECT_TRUE(sent_.empty());
  EXPECT_EQ(listener.said, "");
  EXPECT_EQ(hub_.prompt_tokens(), 0U);
}

TEST_F(EngineHubTest, WhoKillsEnginesWithoutATokenFails) {
  say(messages::Hello{.numerics_id = "a"});
  Listener guilty;
  Listener innocent;
  submit(guilty);
  const RequestId id = submit(innocent);
  for (int i = 0; i < 3; ++i) {
    say(messages::Token{.id = id, .token = TokenId(i)});
    die();
    say(messages::Hello{.numerics_id = "a"});
  }
  EXPECT_NE(guilty.said.find("failed: "), std::string::npos);
  EXPECT_EQ(innocent.said.find("failed: "), std::string::npos);
  EXPECT_EQ(hub_.num_active(), 1U);
}

TEST_F(EngineHubTest, AnEngineWithOtherNumericsDoesNotGoOnWithAnswers) {
  say(messages::Hello{.numerics_id = "a"});
  Listener listener;
  submit(listener);
  die();
  say(messages::Hello{.numerics_id = "b"});
  EXPECT_NE(listener.said.find("failed: "), std::string::npos);
  EXPECT_EQ(hub_.num_active(), 0U);
}

TEST_F(EngineHubTest, WhatADeadEngineStillSaysIsNotHeard) {
  say(messages::Hello{.numerics_id = "a"});
  Listener listener;
  const RequestId id = submit(listener);
  const EngineEvents old = events_;
  die();
  std::vector<messages::ToFront> late;
  late.emplace_back(messages::Token{.id = id, .token = TokenId(7)});
  old.on_messages(std::move(late));
  run();
  EXPECT_EQ(listener.said, "interrupted ");
}

}  // namespace
}  // namespace cicada::server
