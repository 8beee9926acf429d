// How large a body may be, unless the server says otherwise.
// Threads: constants.
#pragma once

#include <cstddef>

#include "cicada/json/parse.h"

namespace cicada::api {

inline constexpr json::Limits kBodyLimits{.max_bytes = std::size_t{32} << 20, .max_depth = 64};

}  // namespace cicada::api
