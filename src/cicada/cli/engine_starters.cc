#include "cicada/cli/engine_starters.h"

#include <fmt/format.h>

#include <csignal>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "cicada/cli/common.h"
#include "cicada/cli/messages.h"
#include "cicada/engine/engine_loop.h"
#include "cicada/ipc/channel.h"
#include "cicada/platform/child_process.h"
#include "cicada/platform/local_socket.h"

namespace cicada::cli {
namespace {

// An engine's words when it cannot start: the front is the one that says them to the operator.
messages::Failed last_words(const Error& error) {
  return {.id = 0, .code = error.code(), .message = error.to_string()};
}

class ProcessPort : public server::EnginePort {
 public:
  static Result<std::unique_ptr<server::EnginePort>> start(const std::vector<std::string>& argv,
                                                           server::EngineEvents events) {
    CICADA_ASSIGN(platform::SocketPair sockets, platform::make_socket_pair());
    auto port = std::make_unique<ProcessPort>();
    CICADA_ASSIGN(port->child_, platform::ChildProcess::start(
                                    {.argv = argv, .inherited_fd = sockets.second.get()}));
    ipc::FrontSide::Callbacks callbacks;
    callbacks.on_messages = std::move(events.on_messages);
    callbacks.on_closed = [on_closed = std::move(events.on_closed),
                           child = port->child_.get()](const Error& error) {
      // Why it ended says more than that the connection did.
      const std::optional<int> status = child->wait_for(std::chrono::milliseconds(200));
      on_closed(status ? describe(*status) : error.to_string());
    };
    CICADA_ASSIGN(port->channel_,
                  ipc::FrontSide::open(std::move(sockets.first), std::move(callbacks)));
    return port;
  }

  void send(std::vector<messages::ToEngine> messages) override {
    // A broken channel says so by itself.
    (void)channel_->send(messages);
  }

 private:
  static std::string describe(int status) {
    if (status > 128) return fmt::format("signal {} ended it", status - 128);
    return fmt::format("it ended with status {}", status);
  }

  std::unique_ptr<platform::ChildProcess> child_;
  std::unique_ptr<ipc::FrontSide> channel_;  // its callbacks use the child: it goes first
};

class ThreadPort : public server::EnginePort {
 public:
  ThreadPort(const EngineArguments& arguments, server::EngineEvents events)
      : events_(std::move(events)), thread_([this, arguments] { run(arguments); }) {}

  ~ThreadPort() override {
    {
      const std::lock_guard lock(mutex_);
      is_ending_ = true;
      if (loop_) loop_->stop();
    }
    thread_.join();
  }

  void send(std::vector<messages::ToEngine> messages) override {
    const std::lock_guard lock(mutex_);
    if (loop_) loop_->post(std::move(messages));
  }

 private:
  void run(const EngineArguments& arguments) noexcept {
    auto setup = EngineSetup::create(arguments);
    if (!setup) {
      events_.on_messages({last_words(setup.error())});
      return events_.on_closed("it did not start");
    }
    {
      const std::lock_guard lock(mutex_);
      if (is_ending_) return;
      loop_.emplace(*setup->engine, events_.on_messages);
    }
    loop_->run(setup->hello);
    const std::lock_guard lock(mutex_);
    loop_.reset();
  }

  server::EngineEvents events_;
  std::mutex mutex_;
  std::optional<engine::EngineLoop> loop_;  // guarded by mutex_, but for its own thread
  bool is_ending_ = false;                  // guarded by mutex_
  std::thread thread_;
};

}  // namespace

server::EngineStarter process_starter(std::vector<std::string> argv) {
  return [argv = std::move(argv)](server::EngineEvents events) {
    return ProcessPort::start(argv, std::move(events));
  };
}

server::EngineStarter thread_starter(EngineArguments arguments) {
  return [arguments = std::move(arguments)](
             server::EngineEvents events) -> Result<std::unique_ptr<server::EnginePort>> {
    return std::make_unique<ThreadPort>(arguments, std::move(events));
  };
}

namespace {

Result<int> end_with_words(platform::Fd socket, const Error& error) {
  CICADA_ASSIGN(const auto channel,
                ipc::EngineSide::open(std::move(socket), {.on_messages = [](const auto&) {},
                                                          .on_closed = [](const Error&) {}}));
  // So few bytes leave before this returns.
  CICADA_TRY(channel->send(last_words(error)));
  return exit_status(error.code());
}

}  // namespace

Result<int> run_engine_worker(const EngineArguments& arguments) {
  // The terminal's signals go to the front as well, which ends this process when it is time.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);
  CICADA_ASSIGN(platform::Fd socket, platform::adopt_local_socket(platform::kInheritedFd));
  auto setup = EngineSetup::create(arguments);
  if (!setup) return end_with_words(std::move(socket), setup.error());
  std::unique_ptr<ipc::EngineSide> channel;
  engine::EngineLoop loop(*setup->engine, [&channel](const engine::Engine::Events& events) {
    (void)channel->send(events);
  });
  ipc::EngineSide::Callbacks callbacks;
  callbacks.on_messages = [&loop](std::vector<messages::ToEngine> messages) {
    loop.post(std::move(messages));
  };
  callbacks.on_closed = [&loop](const Error&) { loop.stop(); };
  CICADA_ASSIGN(channel, ipc::EngineSide::open(std::move(socket), std::move(callbacks)));
  loop.run(setup->hello);
  return kSuccess;
}

}  // namespace cicada::cli
