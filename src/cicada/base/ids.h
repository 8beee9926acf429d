// Strong ids: swapped arguments do not compile.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace cicada {

template <typename Tag>
struct Id {
  std::int32_t value = -1;

  constexpr Id() = default;
  constexpr explicit Id(std::int32_t v) : value(v) {}
  constexpr auto operator<=>(const Id&) const = default;
};

using TokenId = Id<struct TokenIdTag>;  // index into a model's vocabulary; negative: none
using SeqId = Id<struct SeqIdTag>;      // one sequence of a batch

}  // namespace cicada

template <typename Tag>
struct std::hash<cicada::Id<Tag>> {
  std::size_t operator()(cicada::Id<Tag> id) const noexcept {
    return std::hash<std::int32_t>()(id.value);
  }
};
