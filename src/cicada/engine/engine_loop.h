// Runs an engine for as long as it is wanted: takes messages from any thread between steps, sleeps
// when there is nothing to do, and hands on what came of each step at once.
// Threads: run() on one thread; the rest from any.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "cicada/engine/engine.h"
#include "cicada/messages/messages.h"

namespace cicada::engine {

class EngineLoop {
 public:
  // `emit` is called on run()'s thread, with no lock held. Lifetime: borrows the engine.
  EngineLoop(Engine& engine, std::function<void(Engine::Events)> emit)
      : engine_(&engine), emit_(std::move(emit)) {}

  // Says `hello` and works until stop().
  void run(messages::Hello hello);
  void post(std::vector<messages::ToEngine> messages);
  // run() returns after the step it is at.
  void stop();

 private:
  bool take(std::vector<messages::ToEngine>& messages, bool is_idle);
  void add_stats(Engine::Events& events, bool is_idle);

  Engine* engine_;
  std::function<void(Engine::Events)> emit_;
  std::chrono::steady_clock::time_point stats_time_;  // run()'s thread only
  bool has_told_idle_ = false;                        // run()'s thread only

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<messages::ToEngine> inbox_;  // guarded by mutex_
  bool is_stopping_ = false;               // guarded by mutex_
};

}  // namespace cicada::engine
