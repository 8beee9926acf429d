// `cicada verify`: is a model file whole, sound, and the one it should be.
#include "cicada/formats/verify.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "cicada/catalog/pull.h"
#include "cicada/cli/common.h"
#include "cicada/cli/output.h"
#include "cicada/cli/printable.h"
#include "cicada/cli/pull.h"
#include "cicada/cli/table.h"
#include "cicada/json/writer.h"
#include "cicada/platform/file.h"
#include "cicada/platform/interrupt.h"
#include "cicada/platform/terminal.h"

namespace cicada::cli {
namespace {

constexpr std::uint64_t kMaxSumsBytes = std::uint64_t{1} << 24;

struct VerifyArguments {
  std::string model;
  // Given but empty is not the same as not given.
  std::optional<std::string> sha256;
  std::optional<std::string> sums;  // a sha256sum file
  bool offline = false;
  bool json = false;
};

// The file of a known model is looked at as it lies there, whatever its state; it is fetched only
// when there is none.
Result<std::string> file_to_verify(const VerifyArguments& arguments) {
  const catalog::KnownModel* known = catalog::find_known_model(arguments.model);
  std::error_code ignored;  // what cannot be looked at is left to resolve_model
  if (known != nullptr && !std::filesystem::exists(arguments.model, ignored)) {
    CICADA_ASSIGN(std::string path, catalog::model_path(*known));
    if (std::filesystem::exists(path, ignored)) return path;
  }
  return resolve_model(arguments.model, arguments.offline);
}

// The digest that the file must have: as given, from the sums, or of the known model that was
// named. Nothing: none is known.
Result<std::optional<std::string>> expected_digest(const VerifyArguments& arguments,
                                                   const std::string& path) {
  if (arguments.sha256) {
    CICADA_ASSIGN(std::string digest, formats::parse_sha256(*arguments.sha256));
    return digest;
  }
  if (arguments.sums) {
    CICADA_ASSIGN(const std::string text, platform::read_file(*arguments.sums, kMaxSumsBytes));
    auto digest = formats::find_sha256(text, std::filesystem::path(path).filename().string());
    if (!digest) return fail(std::move(digest).error().with_context(*arguments.sums));
    return *std::move(digest);
  }
  const catalog::KnownModel* known = catalog::find_known_model(arguments.model);
  const bool is_named = known != nullptr && arguments.model != path;
  return is_named ? std::optional(known->sha256) : std::nullopt;
}

std::string to_json(const std::string& path, const formats::VerifyReport& verdict) {
  json::Writer writer;
  writer.begin_object().field("ok", verdict.ok()).key("problems").begin_array();
  for (const std::string& problem : verdict.problems) writer.string(problem);
  writer.end_array().field("path", path);
  if (verdict.sha256) writer.field("sha256", *verdict.sha256);
  return writer.end_object().take() + "\n";
}

std::string to_text(const std::string& path, const formats::VerifyReport& verdict) {
  const std::string shown = printable(path);
  if (verdict.ok()) {
    return fmt::format("{}: ok{}\n", shown,
                       verdict.sha256 ? ", SHA-256 as expected" : ", SHA-256 not compared");
  }
  std::string text;
  for (const std::string& problem : verdict.problems) text += printable(problem) + "\n";
  return text + fmt::format("{}: {}\n", shown, counted(verdict.problems.size(), "problem"));
}

Result<int> run(const VerifyArguments& arguments) {
  // A digest that is none is refused before a model is fetched for it.
  if (arguments.sha256) CICADA_TRY(formats::parse_sha256(*arguments.sha256));
  if (arguments.sums && arguments.sums->empty()) {
    return fail(Code::kInvalidArgument, "--sums '': the name of a sha256sum file is needed");
  }
  CICADA_ASSIGN(const std::string path, file_to_verify(arguments));
  formats::VerifyOptions options;
  CICADA_ASSIGN(options.sha256, expected_digest(arguments, path));
  platform::Progress progress(STDERR_FILENO);
  options.progress = [&progress](std::uint64_t done, std::uint64_t total) {
    progress.update(fmt::format("verifying  {} of {}", platform::format_bytes(done),
                                platform::format_bytes(total)));
    return !platform::interrupted();
  };
  const auto verdict = formats::verify(path, options);
  progress.clear();
  if (!verdict) return fail(verdict.error());
  Output output;
  output.write(arguments.json ? to_json(path, *verdict) : to_text(path, *verdict));
  CICADA_TRY(output.finish());
  return verdict->ok() ? kSuccess : kVerdictNo;
}

}  // namespace

void add_verify(CLI::App& app, Action& action) {
  // Shared by the parser, which fills it, and the action, which reads it.
  const auto arguments = std::make_shared<VerifyArguments>();
  CLI::App* command =
      app.add_subcommand("verify", "Check a model file: its container, its numbers, its checksum");
  command->add_option("model", arguments->model, "Model file, or the name of a known model")
      ->required();
  // By functions: the parser would read an empty text into an optional as none.
  CLI::Option* digest = command->add_option_function<std::string>(
      "--sha256", [arguments](const std::string& text) { arguments->sha256 = text; },
      "The SHA-256 it must have, 64 hex digits (default: that of the known model, when one is "
      "named)");
  command
      ->add_option_function<std::string>(
          "--sums", [arguments](const std::string& path) { arguments->sums = path; },
          "A sha256sum file that names the model file")
      ->excludes(digest);
  command->add_flag("--offline", arguments->offline, "Never fetch a model");
  command->add_flag("--json", arguments->json, "Print one JSON object");
  set_action(*command, action, arguments, run);
}

}  // namespace cicada::cli
