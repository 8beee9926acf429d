#include <exception>
#include <sstream>

#include "cicada/cli/common.h"
#include "cicada/cli/messages.h"
#include "cicada/cli/output.h"
#include "cicada/platform/interrupt.h"

namespace cicada::cli {
namespace {

int parse_and_run(int argc, const char* const* argv) {
  platform::install_interrupt_handler();
  CLI::App app{"Cicada serves language models with everything that does nothing taken out.",
               "cicada"};
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("cicada ") + CICADA_VERSION);
  Action action;
  add_run(app, action);
  add_chat(app, action);
  add_inspect(app, action);
  add_verify(app, action);
  add_tokenize(app, action);
  add_perplexity(app, action);
  add_bench(app, action);
  add_convert(app, action);
  add_pull(app, action);
  add_serve(app, action, {argv + 1, argv + argc});
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    std::ostringstream text;
    app.exit(success, text);
    Output output;
    output.write(text.str());
    const Result<void> written = output.finish();
    return written ? kSuccess : report(written.error());
  } catch (const CLI::ParseError& error) {
    complain(error.what());
    return kUsageError;
  }
  return action();
}

}  // namespace

int main(int argc, const char* const* argv) noexcept {
  // The option parser is the only part that throws; whatever else arrives here (memory at its end)
  // still gets a sentence and a status.
  try {
    return parse_and_run(argc, argv);
  } catch (const std::bad_alloc&) {
    complain("memory ran out");
  } catch (const std::exception& error) {
    complain(error.what());
  }
  return kRunTimeFailure;
}

}  // namespace cicada::cli
