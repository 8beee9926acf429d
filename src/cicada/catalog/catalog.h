// From what a user writes after -m to a file: a path, or the name of a known model.
// Threads: as pull().
#pragma once

#include <string>

#include "cicada/base/result.h"
#include "cicada/catalog/pull.h"

namespace cicada::catalog {

// A path that exists wins over a name; a known name is pulled when its file is missing.
// Errors: kNotFound for what is neither, with the names there are; kIo for a path that the system
// does not want to look at, with its words; else as pull().
Result<std::string> resolve(const std::string& name_or_path, const PullOptions& options);

}  // namespace cicada::catalog
