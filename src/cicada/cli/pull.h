// What -m means in every command: a file, or a known model that is fetched when it is missing.
// Threads: the main thread only.
#pragma once

#include <string>

#include "cicada/base/result.h"

namespace cicada::cli {

// The file that -m means: a path that exists, or a known name, fetched with progress on standard
// error unless `offline`. Errors: as catalog::resolve; kCancelled after Ctrl-C.
Result<std::string> resolve_model(const std::string& name_or_path, bool offline);

}  // namespace cicada::cli
