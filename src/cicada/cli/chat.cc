// `cicada chat`: a conversation on the terminal. Every turn is rendered and prefilled anew; what an
// earlier turn already prefilled is taken from the cache.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "cicada/cli/answer.h"
#include "cicada/cli/commands.h"
#include "cicada/platform/interrupt.h"
#include "cicada/platform/terminal.h"

namespace cicada::cli {
namespace {

struct ChatArguments {
  AnswerArguments answer;
  std::string system;
};

// Reads one line; false at the end of the input.
bool read_line(std::string& line) {
  if (platform::is_terminal(STDIN_FILENO)) {
    fmt::print("> ");
    std::fflush(stdout);
  }
  return static_cast<bool>(std::getline(std::cin, line));
}

Result<void> take_turn(Answerer& answerer, const chat::ChatTemplate& chat_template,
                       std::vector<chat::Message>& messages) {
  CICADA_ASSIGN(const std::vector<TokenId> prompt,
                chat_template.encode(messages, *answerer.tokenizer, render_options()));
  CICADA_ASSIGN(const Answer result, answer(answerer, prompt, [](std::string_view piece) {
                  fmt::print("{}", piece);
                  std::fflush(stdout);
                }));
  fmt::print("\n");
  // An answer that was stopped stays in the history as far as it came.
  platform::clear_interrupt();
  messages.push_back({"assistant", result.text});
  return {};
}

Result<int> chat_loop(const ChatArguments& arguments) {
  CICADA_ASSIGN(Answerer answerer, Answerer::create(arguments.answer));
  CICADA_ASSIGN(const chat::ChatTemplate chat_template,
                chat::ChatTemplate::from_model(*answerer.loaded.file, *answerer.tokenizer));
  if (chat_template.is_fallback())
    fmt::print(stderr, "cicada: {}\n", chat_template.fallback_note());
  if (platform::is_terminal(STDIN_FILENO)) {
    fmt::print(stderr, "An empty line or Ctrl-D ends the chat, Ctrl-C stops an answer.\n");
  }
  std::vector<chat::Message> messages;
  if (!arguments.system.empty()) messages.push_back({"system", arguments.system});
  std::string line;
  while (read_line(line) && !line.empty()) {
    messages.push_back({"user", line});
    const auto turn = take_turn(answerer, chat_template, messages);
    if (!turn) {
      // The conversation goes on without the message that could not be answered.
      messages.pop_back();
      report(turn.error());
    }
  }
  return kSuccess;
}

}  // namespace

void add_chat(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<ChatArguments>();
  CLI::App* command = app.add_subcommand("chat", "Chat on the terminal");
  add_answer_options(*command, arguments->answer);
  command->add_option("--system", arguments->system,
                      "A system message in front of the conversation");
  command->callback([arguments, &action] {
    action = [arguments] {
      const auto status = chat_loop(*arguments);
      return status ? *status : report(status.error());
    };
  });
}

}  // namespace cicada::cli
