// Result<T>: a value or an Error. Our code does not throw; see docs/decisions for why.
#pragma once

#include <fmt/format.h>

#include <tl/expected.hpp>
#include <utility>

#include "cicada/base/error.h"

namespace cicada {

template <typename T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
};

// An Error ready to be returned from a function that yields a Result.
template <typename... Args>
tl::unexpected<Error> fail(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return tl::unexpected<Error>(Error(code, fmt::format(format, std::forward<Args>(args)...)));
}

inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }

}  // namespace cicada

#define CICADA_CONCAT_INNER(a, b) a##b
#define CICADA_CONCAT(a, b) CICADA_CONCAT_INNER(a, b)

// Returns the error of `expr` from the enclosing function; a value is dropped.
#define CICADA_TRY(expr)                                                         \
  do {                                                                           \
    auto cicada_result = (expr);                                                 \
    if (!cicada_result) return ::cicada::fail(std::move(cicada_result).error()); \
  } while (false)

// `CICADA_ASSIGN(auto x, f());` declares x from the value of f(), or returns f()'s error.
#define CICADA_ASSIGN(declaration, expr) \
  CICADA_ASSIGN_INNER(CICADA_CONCAT(cicada_result_, __LINE__), declaration, expr)
#define CICADA_ASSIGN_INNER(name, declaration, expr)         \
  auto name = (expr);                                        \
  if (!name) return ::cicada::fail(std::move(name).error()); \
  declaration = std::move(*name)
