// The options of pages and of the prefix cache, for commands that answer.
// Threads: the main thread only.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "cicada/base/result.h"
#include "cicada/cli/common.h"
#include "cicada/engine/generator.h"

namespace cicada::cli {

struct PrefixArguments {
  std::string folder;  // empty: prefixes live as long as the process
  std::uint64_t most_megabytes = 4096;
  std::uint32_t block_size = kv::kPageTokens;  // tokens
};

// Adds --prefix-cache, --prefix-cache-mb and --block-size.
void add_prefix_options(CLI::App& command, PrefixArguments& arguments);

// What a generator of this model gets; with a folder, names the model by the bytes of its file.
// Errors: kInvalidArgument for a block size that is not possible; those of content_id().
Result<engine::GeneratorOptions> generator_options(const PrefixArguments& arguments,
                                                   const LoadedModel& loaded, std::size_t context);

}  // namespace cicada::cli
