// An engine as the options of `serve` want it: loaded, sized, and able to say what it is.
// Threads: one thread.
#pragma once

#include <cstdint>
#include <memory>

#include "cicada/base/result.h"
#include "cicada/cli/common.h"
#include "cicada/cli/kv_option.h"
#include "cicada/cli/prefix_options.h"
#include "cicada/engine/engine.h"
#include "cicada/messages/messages.h"

namespace cicada::cli {

struct EngineArguments {
  ModelArguments model;
  std::uint32_t context = 0;  // tokens; 0: what the model was trained for, at most 16384
  KvArguments kv;
  PrefixArguments prefix;
  std::uint64_t cache_bytes = 0;  // for keys and values; 0: what default_pool_pages() takes
  std::uint32_t max_running = 64;
  std::uint32_t max_rows = 256;
};

struct EngineSetup {
  LoadedModel loaded;
  std::unique_ptr<engine::Engine> engine;
  messages::Hello hello;  // with its screen

  // Errors: those of loading and of the options; kOutOfMemory with what would fit.
  static Result<EngineSetup> create(const EngineArguments& arguments);
};

}  // namespace cicada::cli
