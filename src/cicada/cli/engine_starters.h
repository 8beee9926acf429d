// Where the engine of `serve` runs: in a process of its own, or in a thread of this one.
#pragma once

#include <string>
#include <vector>

#include "cicada/base/result.h"
#include "cicada/cli/engine_setup.h"
#include "cicada/server/engine_port.h"

namespace cicada::cli {

// Starts this program again with `argv`, which makes it call run_engine_worker().
server::EngineStarter process_starter(std::vector<std::string> argv);

// Runs the engine on a thread: nothing of it can be restarted.
server::EngineStarter thread_starter(EngineArguments arguments);

// The engine's process: serves the socket it was started with until that is closed.
// Errors: those of EngineSetup; kInvalidArgument when there is no such socket.
Result<int> run_engine_worker(const EngineArguments& arguments);

}  // namespace cicada::cli
