// `cicada serve`: the server.
#include <fmt/format.h>
#include <unistd.h>

#include <thread>

#include "cicada/chat/chat_template.h"
#include "cicada/cli/commands.h"
#include "cicada/cli/engine_starters.h"
#include "cicada/cli/messages.h"
#include "cicada/cli/pull.h"
#include "cicada/cli/serve_options.h"
#include "cicada/platform/child_process.h"
#include "cicada/platform/interrupt.h"
#include "cicada/server/server.h"

namespace cicada::cli {
namespace {

// How often the signals are looked at.
constexpr std::chrono::milliseconds kSignalLook{20};

// The engine's process is this program with the same words, and one more.
Result<server::EngineStarter> engine_starter(const ServeArguments& arguments,
                                             const std::vector<std::string>& words) {
  if (arguments.in_process) return thread_starter(arguments.engine);
  CICADA_ASSIGN(const std::string program, platform::executable_path());
  std::vector<std::string> argv = {program};
  argv.insert(argv.end(), words.begin(), words.end());
  argv.emplace_back("--engine-worker");
  return process_starter(std::move(argv));
}

void show_screen(const messages::Hello& hello, const std::string& address) {
  for (const std::string& line : hello.screen) say(line);
  say(fmt::format("address  {}", address));
}

// Stops the server at the first signal; the second ends the process (platform/interrupt.h).
class SignalWatch {
 public:
  explicit SignalWatch(server::Server& server)
      : thread_([&server](const std::stop_token& stop) { watch(server, stop); }) {}

 private:
  static void watch(server::Server& server, const std::stop_token& stop) noexcept {
    while (!stop.stop_requested()) {
      if (platform::interrupted()) return server.stop();
      std::this_thread::sleep_for(kSignalLook);
    }
  }

  std::jthread thread_;
};

Result<int> serve(const ServeArguments& arguments, const std::vector<std::string>& words) {
  CICADA_TRY(check(arguments));
  if (arguments.is_worker) return run_engine_worker(arguments.engine);
  CICADA_ASSIGN(const std::string path,
                resolve_model(arguments.engine.model.model, arguments.engine.model.offline));
  CICADA_ASSIGN(server::ServerConfig config, server_config(arguments, path));
  CICADA_ASSIGN(const formats::ModelFile file, formats::ModelFile::open(path));
  CICADA_ASSIGN(const auto tokenizer, tokenizer::Tokenizer::create(file));
  CICADA_ASSIGN(const chat::ChatTemplate chat_template,
                chat::ChatTemplate::from_model(file, *tokenizer));
  for (const std::string& note : tokenizer->notes()) complain(note);
  if (chat_template.is_fallback()) complain(chat_template.fallback_note());
  CICADA_ASSIGN(server::EngineStarter starter, engine_starter(arguments, words));
  server::Server server(std::move(config), std::move(starter), *tokenizer, chat_template,
                        {.on_ready = show_screen, .log = say});
  const SignalWatch watch(server);
  CICADA_TRY(server.run());
  return kSuccess;
}

}  // namespace

void add_serve(CLI::App& app, Action& action, std::vector<std::string> words) {
  CLI::App& command = *app.add_subcommand("serve", "Serve a model: Anthropic's and OpenAI's APIs");
  auto arguments = std::make_shared<ServeArguments>();
  add_serve_options(command, *arguments);
  command.callback([&action, arguments, words = std::move(words)] {
    action = [arguments, words] {
      const Result<int> status = serve(*arguments, words);
      return status ? *status : report(status.error());
    };
  });
}

}  // namespace cicada::cli
