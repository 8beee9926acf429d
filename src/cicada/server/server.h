// The front: listens, answers, keeps the engine running, and ends when it is told to.
// Threads: run() on one thread; stop() from any.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/base/result.h"
#include "cicada/chat/chat_template.h"
#include "cicada/server/config.h"
#include "cicada/server/engine_port.h"
#include "cicada/tokenizer/tokenizer.h"

namespace cicada::server {

// What an operator is told.
struct ServerNotices {
  // The engine is ready and the server listens: lines for the screen.
  std::function<void(const messages::Hello&, const std::string& address)> on_ready;
  // Lines of the log, JSON.
  std::function<void(std::string_view line)> log;
};

class Server {
 public:
  // Lifetime: borrows tokenizer and template.
  Server(ServerConfig config, EngineStarter starter, const tokenizer::Tokenizer& tokenizer,
         const chat::ChatTemplate& chat_template, ServerNotices notices);
  ~Server();

  // Serves until stop(). Errors: those of listening, and of an engine that does not start.
  Result<void> run();
  // The first time: takes no more requests and returns from run() when the running ones are done,
  // or after the time the configuration gives them, with an error to their clients. The second
  // time: at once.
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cicada::server
