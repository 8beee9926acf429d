#include "cicada/cli/context_option.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "cicada/cli/messages.h"
#include "cicada/model/rope_range.h"

namespace cicada::cli {

std::size_t context_tokens(std::uint32_t wanted, std::uint32_t most_by_default,
                           const model::Config& config) {
  if (wanted == 0) return std::size_t{std::min(config.trained_context, most_by_default)};
  std::string limits;
  const auto add = [&limits, wanted](std::uint64_t tokens, std::string_view why) {
    if (wanted <= tokens) return;
    limits += fmt::format("{}the {} that {}", limits.empty() ? "" : " and ", tokens, why);
  };
  add(config.trained_context, "this model was trained for");
  add(model::rope_range(config).value_or(UINT64_MAX), "its RoPE base supports");
  if (!limits.empty()) {
    complain(fmt::format("a context of {} tokens is more than {}", wanted, limits));
  }
  return std::size_t{wanted};
}

}  // namespace cicada::cli
