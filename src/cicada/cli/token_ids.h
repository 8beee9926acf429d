// Token ids as text: what `tokenize --decode` reads.
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cicada/base/ids.h"
#include "cicada/base/result.h"

namespace cicada::cli {

// Ids separated by white space, a JSON array of ids, or a JSON object with such an array as
// "tokens". Errors: kInvalidArgument names the first thing that is no id below `vocab_size`.
Result<std::vector<TokenId>> parse_token_ids(std::string_view text, std::int32_t vocab_size);

}  // namespace cicada::cli
