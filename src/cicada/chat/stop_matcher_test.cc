#include "cicada/chat/stop_matcher.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <random>

namespace cicada::chat {
namespace {

using Strings = std::vector<std::string>;

struct Seen {
  std::string text;
  std::optional<std::size_t> matched;
};

Seen run(const Strings& stops, const Strings& pieces) {
  StopMatcher matcher(stops);
  Seen seen;
  for (const std::string& piece : pieces) {
    const StopMatcher::Piece out = matcher.add(piece);
    seen.text += out.text;
    seen.matched = out.matched;
    if (seen.matched) return seen;
  }
  seen.text += matcher.finish();
  return seen;
}

const Strings kAlphaBeta = {"alpha", " be", "ta", " gam", "ma", " delta"};

// BC-05
TEST(StopMatcher, AStopOverSeveralPiecesCutsBeforeIt) {
  const Seen seen = run({"beta gamma"}, kAlphaBeta);
  EXPECT_EQ(seen.text, "alpha ");
  EXPECT_EQ(seen.matched, 0U);
}

// BC-05
TEST(StopMatcher, TextHeldInDoubtIsGivenWhenTheDoubtIsOver) {
  const Seen seen = run({"beta gaX"}, kAlphaBeta);
  EXPECT_EQ(seen.text, "alpha beta gamma delta");
  EXPECT_EQ(seen.matched, std::nullopt);
}

// BC-05
TEST(StopMatcher, TheStopThatEndsFirstCounts) {
  const Seen seen = run({"ta g", "gamma"}, kAlphaBeta);
  EXPECT_EQ(seen.text, "alpha be");
  EXPECT_EQ(seen.matched, 0U);
}

TEST(StopMatcher, NothingOfAStopIsEverGiven) {
  StopMatcher matcher({"beta gamma"});
  std::string so_far;
  for (const std::string& piece : kAlphaBeta) {
    const auto out = matcher.add(piece);
    so_far += out.text;
    EXPECT_EQ(so_far.find('b'), std::string::npos) << so_far;
    if (out.matched) break;
  }
  EXPECT_EQ(so_far, "alpha ");
}

TEST(StopMatcher, OfTwoWithTheSameEndTheLongestCounts) {
  EXPECT_EQ(run({"c", "abc", "bc"}, {"xabc"}).text, "x");
  EXPECT_EQ(run({"c", "abc", "bc"}, {"xabc"}).matched, 1U);
  EXPECT_EQ(run({"c", "bcd"}, {"xbcd"}).text, "xb");
}

TEST(StopMatcher, EqualStopsAreTheFirst) { EXPECT_EQ(run({"x", "ab", "ab"}, {"ab"}).matched, 1U); }

TEST(StopMatcher, ASuffixOfWhatFailedIsStillFound) {
  EXPECT_EQ(run({"aab"}, {"a", "a", "a", "b"}).text, "a");
  EXPECT_EQ(run({"abcd", "bcx"}, {"abcx"}).text, "a");
  EXPECT_EQ(run({"abab#"}, {"ababab#"}).text, "ab");
}

TEST(StopMatcher, WithoutStopsTextPassesAtOnce) {
  StopMatcher matcher({});
  EXPECT_EQ(matcher.add("abc").text, "abc");
  EXPECT_EQ(matcher.finish(), "");
}

TEST(StopMatcher, FinishGivesWhatWasHeldOnce) {
  StopMatcher matcher({"abc"});
  EXPECT_EQ(matcher.add("xab").text, "x");
  EXPECT_EQ(matcher.finish(), "ab");
  EXPECT_EQ(matcher.finish(), "");
}

// The definition, byte by byte: the first end of any stop, the longest of those.
Seen by_force(const Strings& stops, const std::string& text) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < stops.size(); ++i) {
      if (!std::string_view(text).substr(0, end).ends_with(stops[i])) continue;
      if (!best || stops[i].size() > stops[*best].size()) best = i;
    }
    if (best) return {text.substr(0, end - stops[*best].size()), best};
  }
  return {text, std::nullopt};
}

TEST(StopMatcher, AgreesWithBruteForceHoweverTheTextIsSplit) {
  const unsigned seed = std::random_device()();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  const auto word = [&](std::size_t size) {
    std::string text;
    while (text.size() < size) text += static_cast<char>('a' + pick(2));
    return text;
  };
  std::size_t num_matched = 0;
  for (int round = 0; round < 3000; ++round) {
    Strings stops;
    for (std::size_t n = 1 + pick(4); n > 0; --n) stops.push_back(word(1 + pick(9)));
    const std::string text = word(pick(60));
    Strings pieces;
    for (std::size_t at = 0; at < text.size();) {
      pieces.push_back(text.substr(at, pick(6)));
      at += pieces.back().size();
    }
    const Seen expected = by_force(stops, text);
    const Seen seen = run(stops, pieces);
    ASSERT_EQ(seen.text, expected.text) << text << " " << testing::PrintToString(stops);
    ASSERT_EQ(seen.matched, expected.matched) << text << " " << testing::PrintToString(stops);
    num_matched += seen.matched ? 1U : 0U;
  }
  EXPECT_GT(num_matched, 300U);
  EXPECT_LT(num_matched, 2950U);
}

// What a matcher that looks back at every byte takes minutes for.
TEST(StopMatcher, LongStopsThatAlmostMatchCostOnePass) {
  const std::size_t length = 60'000;
  StopMatcher matcher({std::string(length, 'a') + 'b', "ab" + std::string(4'000, 'a') + "c"});
  std::size_t num_given = 0;
  const std::size_t total = 500'000;
  for (std::size_t i = 0; i < total; ++i) num_given += matcher.add("a").text.size();
  EXPECT_EQ(num_given, total - length);
  EXPECT_EQ(matcher.finish().size(), length);
}

}  // namespace
}  // namespace cicada::chat
