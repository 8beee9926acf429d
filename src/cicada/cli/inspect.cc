// `cicada inspect`: what is in a model file, and what the plan will run.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "cicada/cli/common.h"
#include "cicada/cli/inspect_print.h"
#include "cicada/cli/numbers.h"
#include "cicada/cli/pull.h"
#include "cicada/formats/quote.h"
#include "cicada/platform/interrupt.h"
#include "cicada/platform/sha256.h"
#include "cicada/platform/terminal.h"

namespace cicada::cli {
namespace {

struct InspectArguments {
  ModelArguments model;
  bool deep = false;
  bool plan = false;
  bool json = false;
};

Result<std::string> hash_file(const formats::ModelFile& file, platform::Progress& progress) {
  auto digest = platform::sha256_file(file.path(), [&](std::uint64_t done) {
    progress.update(fmt::format("hashing  {} of {}", platform::format_bytes(done),
                                platform::format_bytes(file.size_bytes())));
    return !platform::interrupted();
  });
  progress.clear();
  return digest;
}

Result<std::vector<TensorStudy>> study(const formats::ModelFile& file,
                                       platform::Progress& progress) {
  auto studies = study_tensors(file, [&progress](std::string_view tensor, double share) {
    progress.update(fmt::format("looking into  {:.0f} %  {}", 100 * share, formats::quote(tensor)));
    return !platform::interrupted();
  });
  progress.clear();
  return studies;
}

// The model is loaded, so that the plan shown is the plan that runs.
Result<PlanReport> load_plan(const ModelArguments& arguments) {
  CICADA_ASSIGN(const LoadedModel loaded, load_model(arguments));
  return report_plan(*loaded.model);
}

Result<int> run(const InspectArguments& arguments) {
  ModelArguments model = arguments.model;
  CICADA_ASSIGN(model.model, resolve_model(model.model, model.offline));
  CICADA_ASSIGN(const formats::ModelFile file, formats::ModelFile::open(model.model));
  platform::Progress progress(STDERR_FILENO);
  const InspectReport report = inspect_file(file);
  std::optional<PlanReport> plan;
  if (arguments.plan) {
    CICADA_ASSIGN(plan, load_plan(model));
  }
  std::optional<std::vector<TensorStudy>> studies;
  if (arguments.deep) {
    CICADA_ASSIGN(studies, study(file, progress));
  }
  CICADA_ASSIGN(const std::string sha256, hash_file(file, progress));
  const Inspection inspection{file, report, sha256, studies, plan};
  Output output;
  if (arguments.json) {
    print_json(inspection, output);
  } else {
    print_tables(inspection, output);
  }
  CICADA_TRY(output.finish());
  return kSuccess;
}

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  // Shared by the parser, which fills it, and the action, which reads it.
  const auto arguments = std::make_shared<InspectArguments>();
  CLI::App* command = app.add_subcommand("inspect", "Show what is in a model file");
  command->add_option("model", arguments->model.model, "Model file, or the name of a known model")
      ->required();
  command->add_flag("--deep", arguments->deep,
                    "Exact zeros, norm and rank of each tensor: takes a while");
  CLI::Option* plan = command->add_flag("--plan", arguments->plan,
                                        "Load the model and show the steps that would run");
  command->add_option("-t,--threads", arguments->model.threads, "Threads to load with (--plan)")
      ->transform(whole_number(1, kMaxThreads))
      ->needs(plan);
  command
      ->add_flag("--no-elide", arguments->model.no_elide,
                 "Keep parts that are exactly zero in the plan")
      ->needs(plan);
  command->add_flag("--offline", arguments->model.offline, "Never fetch a model");
  command->add_flag("--json", arguments->json, "Print one JSON object");
  set_action(*command, action, arguments, run);
}

}  // namespace cicada::cli
