// The --kv option: in which width keys and values are cached.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cicada/base/result.h"
#include "cicada/cli/common.h"

namespace cicada::cli {

struct KvArguments {
  std::string type = "f16";
};

void add_kv_option(CLI::App& command, KvArguments& arguments);

// What is wrong with the option whatever the model. Errors: kInvalidArgument.
Result<void> check(const KvArguments& arguments);

// Makes the model cache as asked for. Errors: kInvalidArgument for a type that is not one.
Result<void> use_kv(const LoadedModel& loaded, const KvArguments& arguments);

}  // namespace cicada::cli
