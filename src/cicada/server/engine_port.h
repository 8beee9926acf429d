// The front's end of an engine, wherever that runs: another process, or a thread of this one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cicada/base/result.h"
#include "cicada/messages/messages.h"

namespace cicada::server {

// An engine that is starting or runs; it ends with this object. Threads: one thread.
class EnginePort {
 public:
  virtual ~EnginePort() = default;
  // Never blocks.
  virtual void send(std::vector<messages::ToEngine> messages) = 0;
};

// Called from any thread, in order; never after the port is destroyed.
struct EngineEvents {
  std::function<void(std::vector<messages::ToFront>)> on_messages;
  // Once, when the engine is gone: why.
  std::function<void(std::string)> on_closed;
};

// Starts an engine; it says Hello when it is ready. Errors: those of starting it.
using EngineStarter = std::function<Result<std::unique_ptr<EnginePort>>(EngineEvents)>;

}  // namespace cicada::server
