#include "cicada/cli/common.h"

#include <fmt/format.h>
#include <unistd.h>

#include "cicada/cli/messages.h"
#include "cicada/cli/numbers.h"
#include "cicada/cli/pull.h"
#include "cicada/platform/env.h"
#include "cicada/platform/file.h"
#include "cicada/platform/interrupt.h"
#include "cicada/platform/terminal.h"
#include "cicada/platform/topology.h"

namespace cicada::cli {
namespace {

constexpr std::uint64_t kMaxTextBytes = std::uint64_t{1} << 30;

}  // namespace

int exit_status(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
    case Code::kUnsupported:
    case Code::kCorrupt:
    case Code::kNotFound:
    case Code::kOutOfCapacity:
    case Code::kIo:
      return kUsageError;
    case Code::kOutOfMemory:
    case Code::kOverloaded:
    case Code::kCancelled:
    case Code::kDeadlineExceeded:
    case Code::kInternal:
      return kRunTimeFailure;
  }
  return kRunTimeFailure;
}

int report(const Error& error) {
  complain(error.to_string());
  return exit_status(error.code());
}

void add_model_options(CLI::App& command, ModelArguments& arguments) {
  command.add_option("-m,--model", arguments.model, "Model file, or the name of a known model")
      ->required();
  command
      .add_option("-t,--threads", arguments.threads, "Threads (default: all this process may use)")
      ->transform(whole_number(1, kMaxThreads));
  command.add_flag("--offline", arguments.offline, "Never fetch a model");
  command.add_flag("--no-elide", arguments.no_elide,
                   "Keep parts that are exactly zero in the plan");
  command.add_flag("--resident-panels", arguments.resident_panels,
                   "Keep weights in BF16 too (level amx): short prompts are faster");
}

std::unique_ptr<platform::ThreadPool> make_pool(const ModelArguments& arguments) {
  const std::size_t wanted =
      arguments.threads != 0 ? arguments.threads : platform::usable_threads();
  auto pool = std::make_unique<platform::ThreadPool>(wanted);
  if (pool->size() < wanted) {
    complain(fmt::format("the system refused a thread: {} of {} work", pool->size(), wanted));
  }
  return pool;
}

Result<platform::IsaLevel> kernel_level() {
  const std::string forced = platform::environment_variable("CICADA_FORCE_ISA").value_or("");
  CICADA_ASSIGN(const platform::IsaLevel level,
                platform::choose_isa_level(platform::detect_cpu_features(), forced));
  if (const auto notice = slow_level_notice(level, forced)) complain(*notice);
  return level;
}

std::optional<std::string> slow_level_notice(platform::IsaLevel level, std::string_view forced) {
  if (level != platform::IsaLevel::kScalar || !forced.empty()) return std::nullopt;
  return "this processor lacks AVX2, FMA or F16C: the scalar kernels work, more than ten times "
         "slower (CICADA_FORCE_ISA=scalar silences this)";
}

Result<LoadedModel> load_model(const ModelArguments& arguments) {
  CICADA_ASSIGN(const platform::IsaLevel level, kernel_level());
  CICADA_ASSIGN(const std::string path, resolve_model(arguments.model, arguments.offline));
  CICADA_ASSIGN(formats::ModelFile file, formats::ModelFile::open(path));
  LoadedModel loaded;
  loaded.file = std::make_unique<formats::ModelFile>(std::move(file));
  loaded.pool = make_pool(arguments);
  platform::Progress progress(STDERR_FILENO);
  model::ModelOptions options{.level = level, .load = {}};
  options.load.elide = !arguments.no_elide;
  options.keep_panels = arguments.resident_panels;
  if (arguments.resident_panels && !platform::has_tiles(level)) {
    say(fmt::format("--resident-panels: level {} has no use for them, none are kept",
                    platform::name(level)));
  }
  options.load.progress = [&progress](std::uint64_t done, std::uint64_t total) {
    progress.update(fmt::format("loading  {} of {}", platform::format_bytes(done),
                                platform::format_bytes(total)));
    return !platform::interrupted();
  };
  auto model = model::Model::load(*loaded.file, *loaded.pool, options);
  progress.clear();
  if (!model) return fail(std::move(model).error());
  loaded.model = std::move(*model);
  for (const std::string& notice : loaded.model->plan().notices) say(notice);
  return loaded;
}

Result<std::string> read_text(const std::string& path) {
  return platform::read_file(path == "-" ? "/dev/stdin" : path, kMaxTextBytes,
                             platform::interrupted);
}

}  // namespace cicada::cli
