// `cicada pull`: fetches a known model; and what -m means in every other command.
// Threads: the main thread only.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cicada/base/result.h"

namespace cicada::cli {

struct PullArguments {
  std::string name;
  bool offline = false;
  bool list = false;  // show the known models instead
};

// Adds the subcommand; `arguments` outlives the parse.
CLI::App* add_pull_command(CLI::App& app, PullArguments& arguments);

// Prints the file's path on standard output; the licence, progress and errors on standard error.
// Returns the exit status: 0, 1 when fetching failed, 2 for a name that is not known.
int run_pull(const PullArguments& arguments);

// The file that -m means: a path that exists, or a known name, fetched with progress on standard
// error unless `offline`. Errors: as catalog::resolve; kCancelled after Ctrl-C.
Result<std::string> resolve_model(const std::string& name_or_path, bool offline);

}  // namespace cicada::cli
