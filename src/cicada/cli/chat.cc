// `cicada chat`: a conversation on the terminal. Every turn is rendered and prefilled anew; what an
// earlier turn already prefilled is taken from the cache.
#include <unistd.h>

#include <iostream>

#include "cicada/cli/answer.h"
#include "cicada/cli/messages.h"
#include "cicada/cli/output.h"
#include "cicada/platform/interrupt.h"
#include "cicada/platform/terminal.h"

namespace cicada::cli {
namespace {

struct ChatArguments {
  AnswerArguments answer;
  std::string system;
};

// Reads one line; false at the end of the input.
bool read_line(std::string& line, Output& output) {
  if (platform::is_terminal(STDIN_FILENO)) output.stream("> ");
  return static_cast<bool>(std::getline(std::cin, line));
}

Result<void> take_turn(Answerer& answerer, const chat::ChatTemplate& chat_template,
                       std::vector<chat::Message>& messages, Output& output) {
  CICADA_ASSIGN(const std::vector<TokenId> prompt,
                chat_template.encode(messages, *answerer.tokenizer, render_options()));
  CICADA_ASSIGN(const Answer result, answer(answerer, prompt, [&output](std::string_view piece) {
                  return output.stream(piece);
                }));
  output.write("\n");
  // An answer that was stopped stays in the history as far as it came.
  platform::clear_interrupt();
  messages.push_back({"assistant", result.text});
  return {};
}

Result<int> chat_loop(const ChatArguments& arguments) {
  CICADA_ASSIGN(Answerer answerer, Answerer::create(arguments.answer));
  CICADA_ASSIGN(const chat::ChatTemplate chat_template,
                chat::ChatTemplate::from_model(*answerer.loaded.file, *answerer.tokenizer));
  if (chat_template.is_fallback()) complain(chat_template.fallback_note());
  const bool is_interactive = platform::is_terminal(STDIN_FILENO);
  if (is_interactive) {
    say("An empty line or Ctrl-D ends the chat, Ctrl-C stops an answer.");
  }
  std::vector<chat::Message> messages;
  if (!arguments.system.empty()) messages.push_back({"system", arguments.system});
  Output output;
  int status = kSuccess;
  std::string line;
  // After an answer that SIGTERM stopped, the chat ends too.
  while (!platform::interrupted() && read_line(line, output) && !line.empty()) {
    messages.push_back({"user", line});
    const auto turn = take_turn(answerer, chat_template, messages, output);
    status = kSuccess;
    if (!turn) {
      // The conversation goes on without the message that could not be answered.
      messages.pop_back();
      status = report(turn.error());
    }
    CICADA_TRY(output.finish());
    answerer.generator->save_prefix();  // while the answer is read
  }
  // At a terminal the refusal was read when it came; a script learns here how the last message
  // went.
  return is_interactive ? kSuccess : status;
}

}  // namespace

void add_chat(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<ChatArguments>();
  CLI::App* command = app.add_subcommand("chat", "Chat on the terminal");
  add_answer_options(*command, arguments->answer);
  command->add_option("--system", arguments->system,
                      "A system message in front of the conversation");
  set_action(*command, action, arguments, chat_loop);
}

}  // namespace cicada::cli
