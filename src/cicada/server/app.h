// What the endpoints share. Threads: the loop's, but for what says otherwise.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cicada/api/error.h"
#include "cicada/chat/chat_template.h"
#include "cicada/http/loop.h"
#include "cicada/server/auth.h"
#include "cicada/server/config.h"
#include "cicada/server/engine_hub.h"
#include "cicada/server/prepare.h"
#include "cicada/server/telemetry.h"
#include "cicada/server/work_queue.h"
#include "cicada/tokenizer/tokenizer.h"

namespace cicada::server {

class Generation;

struct App {
  App(http::Loop& own_loop, ServerConfig own_config, EngineHub& own_hub, Telemetry& own_telemetry,
      const tokenizer::Tokenizer& tokenizer, const chat::ChatTemplate& chat_template)
      : loop(own_loop),
        config(std::move(own_config)),
        hub(own_hub),
        telemetry(own_telemetry),
        auth(config.keys),
        preparer{.tokenizer = &tokenizer, .chat_template = &chat_template} {}

  http::Loop& loop;
  const ServerConfig config;
  EngineHub& hub;
  Telemetry& telemetry;
  const Auth auth;
  const Preparer preparer;  // threads: any
  WorkQueue work;           // threads: any

  std::size_t num_admitted = 0;  // choices of requests: queued, being prepared, or running
  bool is_draining = false;
  std::set<std::shared_ptr<Generation>> generations;  // that have not ended

  // Does `task` on the queue's thread, and gives what it returns to `then` on the loop's.
  template <class Task, class Then>
  void off_loop(Task task, Then then) {
    work.post([this, task = std::move(task), then = std::move(then)]() mutable {
      auto result = std::make_shared<decltype(task())>(task());
      // Moved, so that what it holds is given up on the loop and not here.
      loop.post([result, then = std::move(then)]() mutable { then(std::move(*result)); });
    });
  }

  // The name that replies carry for what a client asked for; nothing when no such model is here. An
  // empty name asks for the only one.
  std::optional<std::string> served_name(std::string_view asked) const;
  // Places for `count` choices, or why there are none (529, 503; 400 where there never are).
  std::optional<api::ApiError> admit(std::size_t count);
  // Why prompts of so many tokens cannot run or wait beside those that do (529). What is alone may
  // be as long as the context.
  std::optional<api::ApiError> admit_tokens(std::uint64_t tokens) const;
  void leave(std::size_t count) { num_admitted -= count; }
  std::size_t max_admitted() const { return hub.hello().max_running + config.max_queue; }
};

// Seconds since 1970.
std::int64_t unix_time_s();

}  // namespace cicada::server
