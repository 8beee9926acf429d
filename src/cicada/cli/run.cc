// `cicada run`: one answer, streamed.
#include <fmt/format.h>

#include <chrono>

#include "cicada/cli/answer.h"
#include "cicada/cli/messages.h"
#include "cicada/cli/output.h"
#include "cicada/json/writer.h"

namespace cicada::cli {
namespace {

struct RunArguments {
  AnswerArguments answer;
  std::string prompt;
  std::string system;
  bool raw = false;
  bool json = false;
};

Result<std::vector<TokenId>> encode_prompt(const RunArguments& arguments,
                                           const Answerer& answerer) {
  std::string prompt = arguments.prompt;
  if (prompt == "-") {
    CICADA_ASSIGN(prompt, read_text("-"));
  }
  if (prompt.empty()) return fail(Code::kInvalidArgument, "the prompt is empty");
  if (arguments.raw) {
    if (!arguments.system.empty()) {
      return fail(Code::kInvalidArgument, "--system needs a chat template, which --raw leaves out");
    }
    return answerer.tokenizer->encode(prompt, {.add_bos = answerer.tokenizer->wants_bos()});
  }
  CICADA_ASSIGN(const chat::ChatTemplate chat_template,
                chat::ChatTemplate::from_model(*answerer.loaded.file, *answerer.tokenizer));
  if (chat_template.is_fallback()) complain(chat_template.fallback_note());
  std::vector<chat::Message> messages;
  if (!arguments.system.empty()) messages.push_back({"system", arguments.system});
  messages.push_back({"user", prompt});
  return chat_template.encode(messages, *answerer.tokenizer, render_options());
}

double milliseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

std::string to_json(const Answer& answer, const model::Model& model) {
  const engine::Generation& generation = answer.generation;
  json::Writer writer;
  writer.begin_object()
      .field("text", answer.text)
      .field("prompt_tokens", generation.prompt_tokens)
      .field("reused_tokens", generation.reused_tokens)
      .field("completion_tokens", generation.tokens.size())
      .field("finish_reason", engine::finish_reason_name(generation.reason))
      .field("prefill_tokens_per_second", generation.prefill_rate())
      .field("prefill_ms", milliseconds(generation.prefill_time))
      .field("decode_tokens_per_second", generation.decode_rate())
      .field("drafted_tokens", generation.drafted_tokens)
      .field("accepted_tokens", generation.accepted_tokens)
      .key("elided")
      .begin_array();
  for (const std::string& name : model.plan().elided) writer.string(name);
  writer.end_array();
  writer.key("tokens").begin_array();
  for (const TokenId id : generation.tokens) writer.number(id.value);
  writer.end_array().field("isa", platform::name(model.level()));
  writer.field("numerics_id", model.numerics_id()).end_object();
  return writer.take();
}

Result<int> run(const RunArguments& arguments) {
  CICADA_ASSIGN(Answerer answerer, Answerer::create(arguments.answer));
  CICADA_ASSIGN(const std::vector<TokenId> prompt, encode_prompt(arguments, answerer));
  Output output;
  CICADA_ASSIGN(const Answer result, answer(answerer, prompt, [&](std::string_view piece) {
                  return arguments.json || output.stream(piece);
                }));
  output.write(arguments.json ? to_json(result, *answerer.loaded.model) + "\n" : "\n");
  CICADA_TRY(output.finish());  // the answer is whole before anything is said about it
  if (!arguments.json) {
    const engine::Generation& g = result.generation;
    const std::string reused =
        g.reused_tokens == 0 ? "" : fmt::format(" ({} known)", g.reused_tokens);
    say(fmt::format("{} prompt tokens{} at {:.1f}/s, {} answered at {:.1f}/s ({}, {}, {} threads)",
                    g.prompt_tokens, reused, g.prefill_rate(), g.tokens.size(), g.decode_rate(),
                    engine::finish_reason_name(g.reason),
                    platform::name(answerer.loaded.model->level()), answerer.loaded.pool->size()));
  }
  return result.generation.reason == engine::FinishReason::kCancelled ? kRunTimeFailure : kSuccess;
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand("run", "Answer one prompt");
  add_answer_options(*command, arguments->answer);
  command->add_option("-p,--prompt", arguments->prompt, "The prompt; - reads standard input")
      ->required();
  command->add_option("--system", arguments->system, "A system message in front of the prompt");
  command->add_flag("--raw", arguments->raw, "Continue the prompt itself: no chat template");
  command->add_flag("--json", arguments->json, "Print one JSON object instead of streaming");
  set_action(*command, action, arguments, run);
}

}  // namespace cicada::cli
