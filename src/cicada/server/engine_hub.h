// Keeps an engine running and every request going.
//
// When the engine dies, another is started, and what runs is given to it again: prompt and emitted
// tokens, each in its own role, so that the answer goes on with the tokens it would have had
// (docs/numerics.md). That holds only for an engine with the same numerics_id; with another,
// running requests fail, and the hub ends: its model was replaced. A request during which engines
// keep dying without getting it any further is taken for the reason, and fails. Threads: the
// loop's.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cicada/base/check.h"
#include "cicada/http/loop.h"
#include "cicada/messages/messages.h"
#include "cicada/server/engine_port.h"

namespace cicada::server {

// Who gets the tokens of a request. Not called after Finished or Failed, nor after cancel().
class EngineListener {
 public:
  virtual ~EngineListener() = default;
  virtual void on_started(const messages::Started& started) = 0;
  virtual void on_token(const messages::Token& token) = 0;
  virtual void on_finished(const messages::Finished& finished) = 0;
  virtual void on_failed(const messages::Failed& failed) = 0;
  // The engine is gone; another will go on.
  virtual void on_interrupted() = 0;
};

struct HubOptions {
  std::uint32_t most_deaths = 3;  // of engines, while one request got no token: then it fails
  std::chrono::milliseconds most_backoff{5000};  // between starts that fail
  // Told what an operator should know, a sentence each.
  std::function<void(const std::string&)> log;
  std::function<void(const messages::Stats&)> on_stats;
  // An engine took the place of one that died, and goes on with so many requests.
  std::function<void(std::size_t replayed)> on_restart;
};

class EngineHub {
 public:
  EngineHub(http::Loop& loop, EngineStarter starter, HubOptions options);
  ~EngineHub();
  EngineHub(const EngineHub&) = delete;
  EngineHub& operator=(const EngineHub&) = delete;

  // Starts the first engine. `on_ready` is called at its Hello; `on_failed` when it cannot be
  // started (with its own words), or dies before it: then there is no model to serve. It is called
  // later when an engine comes back as another.
  void start(std::function<void()> on_ready, std::function<void(const Error&)> on_failed);

  bool is_ready() const { return is_ready_; }
  bool has_been_ready() const { return hello_.has_value(); }
  // Of the engine that runs, or ran last. Precondition: one has been ready.
  const messages::Hello& hello() const {
    CICADA_CHECK(hello_.has_value(), "an engine has been ready");
    return *hello_;
  }

  messages::RequestId next_id() { return next_id_++; }
  // `listener` must live until it was told of the end, or cancel().
  void submit(messages::Submit submit, EngineListener& listener);
  // The listener hears no more. Unknown ids are ignored.
  void cancel(messages::RequestId id);
  void pause(messages::RequestId id, bool is_paused);

  std::size_t num_active() const { return active_.size(); }
  std::uint64_t prompt_tokens() const { return prompt_tokens_; }  // of active requests

 private:
  struct Active {
    messages::Submit submit;  // `emitted` grows with every token
    EngineListener* listener = nullptr;
    bool is_paused = false;
    std::uint32_t deaths = 0;  // since its last token
  };
  using Actives = std::map<messages::RequestId, Active>;

  void start_engine();
  void on_messages(std::uint64_t generation, const std::vector<messages::ToFront>& messages);
  void on_closed(std::uint64_t generation, const std::string& reason);
  void on_hello(const messages::Hello& hello);
  void end_as_another(const messages::Hello& hello);
  void handle(const messages::ToFront& message);
  void interrupt_all();
  void fail(messages::RequestId id, Code code, std::string message);
  void erase(Actives::iterator active);
  void log(const std::string& sentence) const;

  http::Loop* loop_;
  EngineStarter starter_;
  HubOptions options_;
  std::function<void()> on_ready_;
  std::function<void(const Error&)> on_failed_;
  std::unique_ptr<EnginePort> port_;
  std::uint64_t generation_ = 0;  // of the port: what an earlier one still says is not heard
  bool is_ready_ = false;
  std::optional<messages::Hello> hello_;
  Actives active_;
  std::uint64_t prompt_tokens_ = 0;
  messages::RequestId next_id_ = 1;
  std::uint32_t failed_starts_ = 0;     // in a row
  std::optional<Error> start_failure_;  // what the engine said of its start
  std::unique_ptr<http::Timer> restart_timer_;
  // Callbacks from other threads hold it weakly: what they posted does nothing once we are gone.
  std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);
};

}  // namespace cicada::server
