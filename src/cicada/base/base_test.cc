#include <gtest/gtest.h>

#include "cicada/base/checked.h"
#include "cicada/base/ids.h"
#include "cicada/base/result.h"

namespace cicada {
namespace {

Result<int> half(int x) {
  if (x % 2 != 0) return fail(Code::kInvalidArgument, "{} is odd", x);
  return x / 2;
}

Result<int> quarter(int x) {
  CICADA_ASSIGN(const int first, half(x));
  CICADA_ASSIGN(const int second, half(first));
  return second;
}

TEST(Result, AssignPassesValuesAndReturnsErrors) {
  EXPECT_EQ(*quarter(12), 3);
  ASSERT_FALSE(quarter(6).has_value());
  EXPECT_EQ(quarter(6).error().message(), "3 is odd");
}

TEST(Error, ContextIsPrintedOutermostFirst) {
  const Error error = Error(Code::kCorrupt, "5 dims, at most 4")
                          .with_context("tensor blk.3.ffn_up")
                          .with_context("model.gguf");
  EXPECT_EQ(error.to_string(), "model.gguf: tensor blk.3.ffn_up: 5 dims, at most 4");
}

TEST(Error, EveryCodeHasAName) {
  for (int code = 0; code <= static_cast<int>(Code::kInternal); ++code) {
    EXPECT_NE(code_name(static_cast<Code>(code)), "unknown");
  }
}

TEST(Checked, OverflowIsNothing) {
  const std::uint64_t max = std::numeric_limits<std::uint64_t>::max();
  EXPECT_FALSE(checked_add(max, 1).has_value());
  EXPECT_FALSE(checked_mul(std::uint64_t{1} << 32, std::uint64_t{1} << 32).has_value());
  EXPECT_FALSE(checked_round_up(max, 32).has_value());
  EXPECT_EQ(checked_round_up(33, 32), 64U);
  EXPECT_FALSE((checked_cast<std::int32_t>(std::uint64_t{1} << 31)).has_value());
}

TEST(Id, ComparesByValue) {
  EXPECT_LT(TokenId(3), TokenId(4));
  EXPECT_EQ(TokenId(), TokenId(-1));
}

}  // namespace
}  // namespace cicada
