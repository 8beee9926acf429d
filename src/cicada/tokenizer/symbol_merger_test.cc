#include "cicada/tokenizer/symbol_merger.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace cicada::tokenizer {
namespace {

// Rules: what may be joined, and how early.
using Rules = std::map<std::string, std::uint32_t>;

std::vector<std::string> merged(const std::string& text, const Rules& rules) {
  SymbolMerger merger;
  merger.clear();
  for (std::size_t i = 0; i < text.size(); ++i) merger.add(1, -1);
  merger.merge([&](const Symbol& left, const Symbol& right) -> std::optional<PairResult> {
    const auto rule = rules.find(text.substr(left.begin_bytes, left.size_bytes + right.size_bytes));
    if (rule == rules.end()) return std::nullopt;
    return PairResult{rule->second, static_cast<std::int32_t>(rule->second)};
  });
  std::vector<std::string> parts;
  merger.for_each([&](const Symbol& symbol) {
    parts.push_back(text.substr(symbol.begin_bytes, symbol.size_bytes));
    if (symbol.size_bytes > 1) {
      EXPECT_EQ(symbol.id, static_cast<std::int32_t>(rules.at(parts.back())));
    }
  });
  return parts;
}

// The same rule done the slow way: look for the best pair again after every join.
std::vector<std::string> slowly_merged(const std::string& text, const Rules& rules) {
  std::vector<std::string> parts;
  for (const char c : text) parts.emplace_back(1, c);
  while (true) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto rule = rules.find(parts[i] + parts[i + 1]);
      if (rule == rules.end()) continue;
      if (!best || rule->second < rules.at(parts[*best] + parts[*best + 1])) best = i;
    }
    if (!best) return parts;
    parts[*best] += parts[*best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(*best) + 1);
  }
}

TEST(SymbolMerger, ACandidateWhoseSymbolGrewIsDropped) {
  EXPECT_EQ(merged("abc", {{"bc", 0}, {"ab", 1}}), (std::vector<std::string>{"a", "bc"}));
}

TEST(SymbolMerger, AmongEqualsTheLeftmostIsJoinedFirst) {
  EXPECT_EQ(merged("aaa", {{"aa", 0}}), (std::vector<std::string>{"aa", "a"}));
  EXPECT_EQ(merged("", {{"aa", 0}}), (std::vector<std::string>{}));
}

TEST(SymbolMerger, AgreesWithTheSlowRule) {
  const auto seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto random_text = [&](std::size_t size) {
    std::string text;
    while (text.size() < size) text += "abc"[random() % 3];
    return text;
  };
  for (int round = 0; round < 300; ++round) {
    Rules rules;
    for (std::uint32_t priority = 0; priority < 12; ++priority) {
      rules.emplace(random_text(2 + random() % 3), priority);
    }
    const std::string text = random_text(random() % 30);
    EXPECT_EQ(merged(text, rules), slowly_merged(text, rules)) << text;
  }
}

}  // namespace
}  // namespace cicada::tokenizer
