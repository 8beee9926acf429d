// For tests: a server on a loop with a thread of its own, and exchanges that a test can hold.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "cicada/http/exchange.h"
#include "cicada/http/loop.h"
#include "cicada/http/raw_client_for_test.h"
#include "cicada/http/server.h"

namespace cicada::http {

inline Response plain(int status, std::string body) {
  return {.status = status, .headers = {{"content-type", "text/plain"}}, .body = std::move(body)};
}

// Answers with what it was asked.
inline void echo(const std::shared_ptr<Exchange>& exchange) {
  const Request& request = exchange->request();
  exchange->respond(plain(200, request.method + " " + request.path + " " + request.body));
}

// A handler that keeps exchanges for the test. They are used and let go on the loop.
class Held {
 public:
  Handler handler() {
    return [this](std::shared_ptr<Exchange> exchange) {
      const std::scoped_lock lock(mutex_);
      exchanges_.push_back(std::move(exchange));
      arrived_.notify_one();
    };
  }
  std::shared_ptr<Exchange> take() {
    std::unique_lock lock(mutex_);
    if (!arrived_.wait_for(lock, std::chrono::seconds(5), [this] { return !exchanges_.empty(); })) {
      ADD_FAILURE() << "no request came";
      return nullptr;
    }
    auto exchange = std::move(exchanges_.front());
    exchanges_.pop_front();
    return exchange;
  }
  std::size_t num_waiting() {
    const std::scoped_lock lock(mutex_);
    return exchanges_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::shared_ptr<Exchange>> exchanges_;
};

// Something that happens on the loop and is waited for in the test.
class Happening {
 public:
  std::function<void()> callback() {
    return [this] {
      const std::scoped_lock lock(mutex_);
      ++count_;
      happened_.notify_all();
    };
  }
  bool wait(std::chrono::milliseconds limit = std::chrono::seconds(5)) {
    std::unique_lock lock(mutex_);
    return happened_.wait_for(lock, limit, [this] { return count_ > 0; });
  }
  int count() {
    const std::scoped_lock lock(mutex_);
    return count_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable happened_;
  int count_ = 0;
};

class TestServer {
 public:
  explicit TestServer(Handler handler, ServerOptions options = {}) {
    if (options.port == 8080) options.port = 0;
    auto listening = Server::listen(loop_, options, std::move(handler),
                                    [](int status, std::string_view sentence, const Request&) {
                                      return plain(status, std::string(sentence));
                                    });
    if (!listening) {
      ADD_FAILURE() << listening.error().to_string();
      return;
    }
    server_ = std::move(*listening);
    thread_ = std::jthread([this] { loop_.run(); });
  }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;
  ~TestServer() {
    if (!server_) return;
    on_loop([this] { server_.reset(); });
    loop_.stop();
  }

  Server& server() { return *server_; }
  Loop& loop() { return loop_; }
  std::uint16_t port() const { return server_->port(); }
  RawClient connect() const { return RawClient::tcp(port()); }

  // Does it on the loop's thread and waits for it.
  void on_loop(const std::function<void()>& work) {
    // Shared, as this may return while set_value() still touches it.
    const auto done = std::make_shared<std::promise<void>>();
    loop_.post([done, &work] {
      work();
      done->set_value();
    });
    done->get_future().wait();
  }
  void let_go(std::shared_ptr<Exchange>& exchange) {
    on_loop([&] { exchange.reset(); });
  }
  // Looks again and again, for some seconds at most.
  bool becomes_true(const std::function<bool()>& condition) {
    for (int i = 0; i < 2'500; ++i) {
      bool is_true = false;
      on_loop([&] { is_true = condition(); });
      if (is_true) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return false;
  }

 private:
  Loop loop_;
  std::unique_ptr<Server> server_;
  std::jthread thread_;  // last: it ends before what it uses goes
};

}  // namespace cicada::http
