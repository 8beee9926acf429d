// `cicada tokenize`: text on standard input to token ids, and back.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "cicada/cli/common.h"
#include "cicada/cli/messages.h"
#include "cicada/cli/output.h"
#include "cicada/cli/pull.h"
#include "cicada/cli/token_ids.h"
#include "cicada/json/writer.h"
#include "cicada/platform/terminal.h"
#include "cicada/tokenizer/tokenizer.h"

namespace cicada::cli {
namespace {

struct TokenizeArguments {
  std::string model;
  bool offline = false;
  bool special = false;
  bool bos = false;
  bool decode = false;
  bool json = false;
};

std::string ids_to_json(const std::vector<TokenId>& ids) {
  json::Writer writer;
  writer.begin_object().key("tokens").begin_array();
  for (const TokenId id : ids) writer.number(id.value);
  return writer.end_array().end_object().take() + "\n";
}

// One line on a terminal; elsewhere a line for each id, so that other programs can count and sort.
std::string ids_to_text(const std::vector<TokenId>& ids, bool is_terminal) {
  std::string text;
  for (const TokenId id : ids) {
    if (is_terminal && !text.empty()) text += ' ';
    text += fmt::format("{}", id.value);
    if (!is_terminal) text += '\n';
  }
  if (is_terminal) text += '\n';
  return text;
}

Result<std::string> encode(const TokenizeArguments& arguments,
                           const tokenizer::Tokenizer& tokenizer) {
  if (arguments.bos && !tokenizer.bos()) {
    return fail(Code::kInvalidArgument, "--bos: this model has no start token");
  }
  CICADA_ASSIGN(const std::string text, read_text("-"));
  const std::vector<TokenId> ids =
      tokenizer.encode(text, {.parse_special = arguments.special, .add_bos = arguments.bos});
  return arguments.json ? ids_to_json(ids) : ids_to_text(ids, platform::is_terminal(STDOUT_FILENO));
}

Result<std::string> decode(const TokenizeArguments& arguments,
                           const tokenizer::Tokenizer& tokenizer) {
  CICADA_ASSIGN(const std::string text, read_text("-"));
  CICADA_ASSIGN(const std::vector<TokenId> ids, parse_token_ids(text, tokenizer.vocab_size()));
  std::string bytes = tokenizer.decode(ids, arguments.special);
  if (!arguments.json) return bytes;
  json::Writer writer;
  return writer.begin_object().field("text", bytes).end_object().take() + "\n";
}

Result<int> run(const TokenizeArguments& arguments) {
  CICADA_ASSIGN(const std::string path, resolve_model(arguments.model, arguments.offline));
  CICADA_ASSIGN(const formats::ModelFile file, formats::ModelFile::open(path));
  CICADA_ASSIGN(const auto tokenizer, tokenizer::Tokenizer::create(file));
  for (const std::string& note : tokenizer->notes()) complain(note);
  CICADA_ASSIGN(const std::string result,
                arguments.decode ? decode(arguments, *tokenizer) : encode(arguments, *tokenizer));
  Output output;
  output.write(result);
  CICADA_TRY(output.finish());
  return kSuccess;
}

}  // namespace

void add_tokenize(CLI::App& app, Action& action) {
  // Shared by the parser, which fills it, and the action, which reads it.
  const auto arguments = std::make_shared<TokenizeArguments>();
  CLI::App* command = app.add_subcommand(
      "tokenize", "Text on standard input to token ids; the weights are not loaded");
  command->add_option("-m,--model", arguments->model, "Model file, or the name of a known model")
      ->required();
  command->add_flag("--special", arguments->special,
                    "Read control tokens in the text as such; with --decode, write them");
  CLI::Option* bos = command->add_flag("--bos", arguments->bos, "Put the start token in front");
  command
      ->add_flag("--decode", arguments->decode,
                 "Ids on standard input (separated by blanks, or JSON) to the bytes they stand for")
      ->excludes(bos);
  command->add_flag("--offline", arguments->offline, "Never fetch a model");
  command->add_flag("--json", arguments->json, "Print one JSON object");
  set_action(*command, action, arguments, run);
}

}  // namespace cicada::cli
