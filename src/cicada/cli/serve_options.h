// The options of `serve`: ours, and those that people know from vLLM and llama-server.
// Threads: the main thread only.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "cicada/base/result.h"
#include "cicada/cli/engine_setup.h"
#include "cicada/server/config.h"

namespace cicada::cli {

// Options of others that mean nothing on a processor: taken, with a notice where they are given.
struct ForeignArguments {
  std::uint32_t tensor_parallel_size = 1;
  std::uint32_t pipeline_parallel_size = 1;
  std::string dtype;
  std::string gpu_memory_utilization;
  bool enforce_eager = false;
  bool enable_prefix_caching = true;
  bool enable_chunked_prefill = true;
  bool trust_remote_code = false;
};

struct ServeArguments {
  EngineArguments engine;
  ForeignArguments foreign;
  std::string host = "127.0.0.1";
  std::uint32_t port = 8080;
  std::string unix_path;
  std::vector<std::string> api_keys;
  std::string api_key_file;
  bool allow_open_bind = false;  // without a key, for others than this machine
  std::vector<std::string> names;
  std::string certificate_path;
  std::string key_path;
  std::vector<std::string> origins;
  std::uint32_t max_queue = 256;
  std::uint64_t max_queue_tokens = std::uint64_t{1} << 22;
  std::uint32_t shutdown_seconds = 30;
  std::string log_level = "info";
  bool no_metrics = false;
  bool in_process = false;
  bool is_worker = false;  // this is the engine's process
};

void add_serve_options(CLI::App& command, ServeArguments& arguments);

// What is wrong with them whatever the model; says what options of others do not do here.
// Errors: kInvalidArgument, kUnsupported.
Result<void> check(const ServeArguments& arguments);

// Errors: those of the key file; kInvalidArgument for a bind that needs a key and has none.
Result<server::ServerConfig> server_config(const ServeArguments& arguments,
                                           const std::string& model_path);

}  // namespace cicada::cli
