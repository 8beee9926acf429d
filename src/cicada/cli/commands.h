// The commands of `cicada`, one file each. A command adds its options to the parser and leaves what
// to do in `action`; the program runs the action of the command that was given.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace cicada::cli {

// Returns the exit status.
using Action = std::function<int()>;

void add_run(CLI::App& app, Action& action);
void add_chat(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_verify(CLI::App& app, Action& action);
void add_tokenize(CLI::App& app, Action& action);
void add_perplexity(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_convert(CLI::App& app, Action& action);
void add_pull(CLI::App& app, Action& action);
// `words`: those that the program was started with, to start it again for the engine.
void add_serve(CLI::App& app, Action& action, std::vector<std::string> words);

// Parses the command line and runs the command. Returns the exit status; never throws.
int main(int argc, const char* const* argv) noexcept;

}  // namespace cicada::cli
