#include "cicada/cli/serve_options.h"

#include <fmt/format.h>

#include <filesystem>

#include "cicada/base/text.h"
#include "cicada/cli/context_option.h"
#include "cicada/cli/messages.h"
#include "cicada/cli/numbers.h"
#include "cicada/platform/file.h"
#include "cicada/platform/file_time.h"
#include "cicada/server/auth.h"

namespace cicada::cli {
namespace {

constexpr std::uint32_t kMostRunning = 1024;
constexpr std::uint32_t kMostRows = 4096;
constexpr std::uint64_t kMostKeyBytes = std::uint64_t{1} << 20;

void add_engine_options(CLI::App& command, EngineArguments& engine) {
  add_model_options(command, engine.model);
  command
      .add_option("-c,--ctx,--max-model-len", engine.context,
                  "Most tokens of a prompt and its answer (0, the default: what the model was "
                  "trained for, at most 16384)")
      ->transform(whole_number(0, kMaxContext));
  add_kv_options(command, engine.kv, true);
  add_prefix_options(command, engine.prefix);
  command
      .add_option("--kv-cache-memory-bytes", engine.cache_bytes,
                  "Memory for keys and values of all requests and of known prefixes, as 512M "
                  "(default: for one request, and a quarter of what is free beside it)")
      ->transform(byte_size());
  command
      .add_option("--max-num-seqs,--parallel", engine.max_running,
                  "Requests that are computed at once (default 64)")
      ->transform(whole_number(1, kMostRunning));
  command
      .add_option("--max-num-batched-tokens", engine.max_rows,
                  "Tokens that are computed at once (default 256)")
      ->transform(whole_number(1, kMostRows));
}

void add_foreign_options(CLI::App& command, ForeignArguments& foreign) {
  const std::string group = "Taken from other servers";
  command.add_option("--tensor-parallel-size", foreign.tensor_parallel_size, "1: there is no more")
      ->transform(whole_number(0, UINT32_MAX))
      ->group(group);
  command
      .add_option("--pipeline-parallel-size", foreign.pipeline_parallel_size, "1: there is no more")
      ->transform(whole_number(0, UINT32_MAX))
      ->group(group);
  command.add_option("--dtype", foreign.dtype, "No meaning: weights are as the file has them")
      ->group(group);
  command
      .add_option("--gpu-memory-utilization", foreign.gpu_memory_utilization,
                  "No meaning: there is no GPU")
      ->check(decimal_number())
      ->group(group);
  command
      .add_flag("--enforce-eager", foreign.enforce_eager, "No meaning: there are no CUDA graphs")
      ->group(group);
  command
      .add_flag("--enable-prefix-caching,!--no-enable-prefix-caching",
                foreign.enable_prefix_caching, "Always on")
      ->group(group);
  command
      .add_flag("--enable-chunked-prefill,!--no-enable-chunked-prefill",
                foreign.enable_chunked_prefill, "Always on")
      ->group(group);
  command.add_flag("--trust-remote-code", foreign.trust_remote_code, "No meaning: none is run")
      ->group(group);
}

bool is_loopback(const std::string& host) {
  return host == "localhost" || host == "::1" || host.starts_with("127.");
}

Result<void> check_parallel(std::string_view option, std::uint32_t size) {
  if (size == 1) return {};
  return fail(Code::kUnsupported,
              "{} {}: the model runs on the cores of this machine, 1 is allowed", option, size);
}

void say_what_is_not_done(const ForeignArguments& foreign) {
  const auto note = [](std::string_view option, std::string_view why) {
    complain(fmt::format("{} changes nothing: {}", option, why));
  };
  if (!foreign.dtype.empty()) note("--dtype", "weights are used as the file has them");
  if (!foreign.gpu_memory_utilization.empty()) {
    note("--gpu-memory-utilization", "there is no GPU; --kv-cache-memory-bytes sizes pages");
  }
  if (foreign.enforce_eager) note("--enforce-eager", "there are no CUDA graphs");
  if (!foreign.enable_prefix_caching) note("--no-enable-prefix-caching", "it is always on");
  if (!foreign.enable_chunked_prefill) note("--no-enable-chunked-prefill", "it is always on");
  if (foreign.trust_remote_code) note("--trust-remote-code", "no code of a model is ever run");
}

// "smollm2" as it is; of a path the file's name without its ending.
std::string model_name(const std::string& model) {
  const bool is_path = model.find('/') != std::string::npos || model.ends_with(".gguf") ||
                       model.ends_with(".safetensors");
  return is_path ? std::filesystem::path(model).stem().string() : model;
}

Result<std::vector<server::ApiKey>> keys(const ServeArguments& arguments) {
  std::vector<server::ApiKey> keys;
  for (const std::string& secret : arguments.api_keys) {
    if (secret.empty()) return fail(Code::kInvalidArgument, "--api-key: is empty");
    keys.push_back({.name = fmt::format("key {}", keys.size() + 1), .secret = secret});
  }
  if (arguments.api_key_file.empty()) return keys;
  CICADA_ASSIGN(const std::string text, platform::read_file(arguments.api_key_file, kMostKeyBytes));
  auto more = server::parse_keys(text);
  if (!more) return fail(std::move(more).error().with_context(arguments.api_key_file));
  for (server::ApiKey& key : *more) {
    // Names without a word of their own go on counting: two keys of one name would be one tenant.
    if (key.is_unnamed) key.name = fmt::format("key {}", keys.size() + 1);
    keys.push_back(std::move(key));
  }
  return keys;
}

}  // namespace

void add_serve_options(CLI::App& command, ServeArguments& arguments) {
  add_engine_options(command, arguments.engine);
  command.add_option("--host", arguments.host, "Address to listen on (default 127.0.0.1)");
  command.add_option("--port", arguments.port, "Port (default 8080; 0: any free one)")
      ->transform(whole_number(0, UINT16_MAX));
  command.add_option("--uds,--unix-socket", arguments.unix_path,
                     "Unix socket to listen on instead");
  command.add_option("--api-key", arguments.api_keys, "Key that clients need; may come again");
  command.add_option("--api-key-file", arguments.api_key_file,
                     "File of keys, one a line: name:secret, or the secret alone");
  command.add_flag("--allow-open-bind", arguments.allow_open_bind,
                   "Listen beyond this machine although no key is needed");
  command.add_option("--served-model-name,--alias", arguments.names,
                     "What clients call the model (claude-*: all that begins so); may come again");
  command.add_option("--ssl-certfile", arguments.certificate_path, "Certificate (PEM): TLS only");
  command.add_option("--ssl-keyfile", arguments.key_path, "Its key (PEM)");
  command.add_option("--allowed-origins", arguments.origins,
                     "Origins whose pages may read replies (*: all); may come again");
  command
      .add_option("--max-num-queued-reqs,--max-queue", arguments.max_queue,
                  "Requests that may wait (default 256); more are told 529")
      ->transform(whole_number(0, 1U << 20));
  command
      .add_option("--max-num-queued-tokens", arguments.max_queue_tokens,
                  "Tokens of all prompts that may be active (default 4194304)")
      ->transform(whole_number(1, UINT64_MAX));
  command
      .add_option("--shutdown-timeout", arguments.shutdown_seconds,
                  "Seconds that running answers get to finish (default 30)")
      ->transform(whole_number(0, 86400));
  command.add_option("--log-level", arguments.log_level,
                     "error, warning, info (default) or debug, in any case");
  command.add_flag("--no-metrics", arguments.no_metrics, "Count nothing; /metrics is not there");
  command.add_flag("--in-process", arguments.in_process,
                   "Run the engine in this process: a fault of it ends the server");
  add_foreign_options(command, arguments.foreign);
  command.add_flag("--engine-worker", arguments.is_worker)->group("");
}

Result<void> check(const ServeArguments& arguments) {
  CICADA_TRY(check_parallel("--tensor-parallel-size", arguments.foreign.tensor_parallel_size));
  CICADA_TRY(check_parallel("--pipeline-parallel-size", arguments.foreign.pipeline_parallel_size));
  CICADA_TRY(check(arguments.engine.kv));
  if (arguments.certificate_path.empty() != arguments.key_path.empty()) {
    return fail(Code::kInvalidArgument,
                "--ssl-certfile and --ssl-keyfile belong together, one of them is missing");
  }
  if (!arguments.is_worker) say_what_is_not_done(arguments.foreign);
  return {};
}

Result<server::ServerConfig> server_config(const ServeArguments& arguments,
                                           const std::string& model_path) {
  server::ServerConfig config;
  config.version = CICADA_VERSION;
  config.model_names = arguments.names;
  if (config.model_names.empty()) {
    config.model_names = {model_name(arguments.engine.model.model)};
  } else if (config.model_names.front().ends_with('*')) {
    config.model_names.insert(config.model_names.begin(), model_name(arguments.engine.model.model));
  }
  config.model_created_unix_s = platform::modified_unix_s(model_path);
  config.http = {.host = arguments.host,
                 .port = static_cast<std::uint16_t>(arguments.port),
                 .unix_path = arguments.unix_path,
                 .certificate_path = arguments.certificate_path,
                 .key_path = arguments.key_path};
  CICADA_ASSIGN(config.keys, keys(arguments));
  const bool is_local = !arguments.unix_path.empty() || is_loopback(arguments.host);
  if (!is_local && config.keys.empty() && !arguments.allow_open_bind) {
    return fail(Code::kInvalidArgument,
                "--host {}: others than this machine could ask without a key; give --api-key-file, "
                "or --allow-open-bind",
                arguments.host);
  }
  config.has_metrics = !arguments.no_metrics;
  CICADA_ASSIGN(config.log_level, server::parse_log_level(arguments.log_level));
  config.cors_origins = arguments.origins;
  config.max_queue = arguments.max_queue;
  config.max_queue_tokens = arguments.max_queue_tokens;
  config.drain_time = std::chrono::seconds(arguments.shutdown_seconds);
  return config;
}

}  // namespace cicada::cli
