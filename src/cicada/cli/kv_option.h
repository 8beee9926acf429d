// The --kv and --kv-policy options: in which width keys and values are cached, and which are read.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cicada/base/result.h"
#include "cicada/cli/common.h"

namespace cicada::cli {

struct KvArguments {
  std::string type = "f16";
  std::string policy = "all";
};

void add_kv_options(CLI::App& command, KvArguments& arguments);

// What is wrong with the option whatever the model. Errors: kInvalidArgument.
Result<void> check(const KvArguments& arguments);

// Makes the model cache and attend as asked for. Errors: kInvalidArgument for what is not one.
Result<void> use_kv(const LoadedModel& loaded, const KvArguments& arguments);

}  // namespace cicada::cli
