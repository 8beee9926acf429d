// `cicada convert`: another container, another type.
#include "cicada/formats/convert.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "cicada/cli/common.h"
#include "cicada/cli/messages.h"
#include "cicada/cli/output.h"
#include "cicada/cli/printable.h"
#include "cicada/cli/pull.h"
#include "cicada/cli/table.h"
#include "cicada/formats/quote.h"
#include "cicada/json/writer.h"
#include "cicada/platform/interrupt.h"
#include "cicada/platform/terminal.h"

namespace cicada::cli {
namespace {

struct ConvertArguments {
  std::string input;
  std::string output;
  std::optional<std::string> type;  // none: each matrix keeps its own
  bool offline = false;
  bool json = false;
};

std::string_view container_name(formats::Container container) {
  return container == formats::Container::kGguf ? "GGUF" : "safetensors";
}

Result<tensor::DType> parse_type(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::optional<tensor::DType> type = tensor::dtype_from_name(name);
  if (type) return *type;
  return fail(Code::kInvalidArgument, "--type '{}' is not known; f32 f16 bf16 q8_0 q4_0 are",
              formats::quote(name));
}

std::string to_json(const ConvertArguments& arguments, const formats::ConvertReport& done) {
  json::Writer writer;
  writer.begin_object()
      .field("output", arguments.output)
      .field("from", container_name(done.from))
      .field("to", container_name(done.to))
      .field("input_bytes", done.input_bytes)
      .field("output_bytes", done.output_bytes)
      .key("files")
      .begin_array();
  for (const std::string& file : done.files) writer.string(file);
  writer.end_array().key("tensors").begin_array();
  for (const formats::ConvertedTensor& tensor : done.tensors) {
    writer.begin_object()
        .field("name", tensor.name)
        .field("from", tensor::name(tensor.from))
        .field("to", tensor::name(tensor.to))
        .field("fell_back", tensor.fell_back)
        .field("overflowed", tensor.num_overflowed)
        .end_object();
  }
  return writer.end_array().end_object().take() + "\n";
}

std::string to_text(const formats::ConvertReport& done) {
  std::string text = fmt::format("{} to {}: {}, {}\n", container_name(done.from),
                                 container_name(done.to), counted(done.tensors.size(), "tensor"),
                                 platform::format_bytes(done.output_bytes));
  for (const std::string& file : done.files) text += printable(file) + "\n";
  return text;
}

// What is not as asked for, for both forms of output.
void warn(const formats::ConvertReport& done) {
  for (const formats::ConvertedTensor& tensor : done.tensors) {
    if (tensor.fell_back) {
      complain(fmt::format("tensor {}: its rows are not whole blocks of the type; written as {}",
                           formats::quote(tensor.name), tensor::name(tensor.to)));
    }
    if (tensor.num_overflowed > 0) {
      complain(fmt::format("tensor {}: {} cannot be held by {} and became infinite or NaN",
                           formats::quote(tensor.name),
                           counted(tensor.num_overflowed, "finite number"),
                           tensor::name(tensor.to)));
    }
  }
}

// Once the input was read, what the system refuses is a failure at run time and no wrong use.
int report_failure(const Error& error) {
  const int status = report(error);
  return error.code() == Code::kIo ? kRunTimeFailure : status;
}

// A place that cannot be written to is wrong use, unlike a disk that fills up on the way.
Result<void> check_folder(const std::string& path) {
  std::error_code ignored;  // what cannot be looked at is left to the writer
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty() || std::filesystem::is_directory(folder, ignored)) return {};
  return fail(Code::kNotFound, "{}: no such folder", folder.string());
}

Result<int> run(const ConvertArguments& arguments) {
  formats::ConvertOptions options;
  if (arguments.type) {
    CICADA_ASSIGN(options.type, parse_type(*arguments.type));
  }
  CICADA_ASSIGN(options.input_path, resolve_model(arguments.input, arguments.offline));
  options.output_path = arguments.output;
  CICADA_TRY(check_folder(options.output_path));
  CICADA_TRY(formats::ModelFile::open(options.input_path));
  platform::Progress progress(STDERR_FILENO);
  options.progress = [&progress](const formats::ConvertProgress& at) {
    progress.update(fmt::format("converting  {} of {}  {}", platform::format_bytes(at.done_bytes),
                                platform::format_bytes(at.total_bytes), formats::quote(at.tensor)));
    return !platform::interrupted();
  };
  const auto done = formats::convert(options);
  progress.clear();
  if (!done) return report_failure(done.error());
  warn(*done);
  Output output;
  output.write(arguments.json ? to_json(arguments, *done) : to_text(*done));
  CICADA_TRY(output.finish());
  return kSuccess;
}

}  // namespace

void add_convert(CLI::App& app, Action& action) {
  // Shared by the parser, which fills it, and the action, which reads it.
  const auto arguments = std::make_shared<ConvertArguments>();
  CLI::App* command =
      app.add_subcommand("convert", "Write a model in another container or another type");
  command->add_option("input", arguments->input, "Model file, or the name of a known model")
      ->required();
  command
      ->add_option("output", arguments->output,
                   "File to write; .gguf or .safetensors decides the container")
      ->required();
  // By a function: the parser would read an empty text into an optional as none.
  command->add_option_function<std::string>(
      "--type", [arguments](const std::string& name) { arguments->type = name; },
      "Type of the matrices: f32 f16 bf16 q8_0 q4_0 (default: as they are)");
  command->add_flag("--offline", arguments->offline, "Never fetch a model");
  command->add_flag("--json", arguments->json, "Print one JSON object");
  set_action(*command, action, arguments, run);
}

}  // namespace cicada::cli
