// What the commands share: the -m and -t options, loading with progress, and exit statuses.
// Threads: the main thread only.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cicada/base/result.h"
#include "cicada/cli/commands.h"
#include "cicada/formats/model_file.h"
#include "cicada/model/model.h"
#include "cicada/platform/thread_pool.h"

namespace cicada::cli {

// Exit statuses of every command (docs/cli.md).
inline constexpr int kSuccess = 0;
inline constexpr int kRunTimeFailure = 1;
inline constexpr int kUsageError = 2;
inline constexpr int kVerdictNo = 3;

// 2 for what the user gave (options, files, a prompt too long), 1 for what went wrong on the way.
int exit_status(Code code);

// Prints "cicada: <sentence>" on standard error and returns the exit status.
int report(const Error& error);

// When `command` was given, the program's action is `run` on what the parser put into `arguments`;
// `run` returns the exit status.
template <class Arguments>
void set_action(CLI::App& command, Action& action, std::shared_ptr<Arguments> arguments,
                Result<int> (*run)(const Arguments&)) {
  command.callback([&action, run, arguments = std::move(arguments)] {
    action = [run, arguments] {
      const Result<int> status = run(*arguments);
      return status ? *status : report(status.error());
    };
  });
}

inline constexpr std::uint32_t kMaxThreads = 1024;

struct ModelArguments {
  std::string model;
  bool offline = false;
  std::uint32_t threads = 0;  // 0: as many as this process may use
  bool no_elide = false;
  bool resident_panels = false;
};

// Adds -m/--model, --offline, -t/--threads, --no-elide and --resident-panels; `arguments` outlives
// the parse.
void add_model_options(CLI::App& command, ModelArguments& arguments);

// A model ready to run.
struct LoadedModel {
  std::unique_ptr<formats::ModelFile> file;  // metadata for tokenizer and template
  std::unique_ptr<platform::ThreadPool> pool;
  std::unique_ptr<model::Model> model;
};

// As many threads as asked for, or as this process may use; fewer, with a line, where the system
// refuses them.
std::unique_ptr<platform::ThreadPool> make_pool(const ModelArguments& arguments);

// The kernel level of this machine, or the one that CICADA_FORCE_ISA names.
Result<platform::IsaLevel> kernel_level();

// What to say about a level that is many times slower than others, and that nobody asked for
// (`forced` is empty).
std::optional<std::string> slow_level_notice(platform::IsaLevel level, std::string_view forced);

// Resolves -m (fetching a known model), opens and loads it, with progress on a terminal and the
// model's notices on standard error.
Result<LoadedModel> load_model(const ModelArguments& arguments);

// Reads a text from a file, or from standard input for "-". At most 1 GiB.
Result<std::string> read_text(const std::string& path);

}  // namespace cicada::cli
