#include "cicada/engine/drafter.h"

#include <gtest/gtest.h>

namespace cicada::engine {
namespace {

std::vector<TokenId> tokens(const std::vector<std::int32_t>& values) {
  std::vector<TokenId> ids;
  for (const std::int32_t value : values) ids.emplace_back(value);
  return ids;
}

std::vector<TokenId> proposed(const Drafter& drafter, std::size_t most) {
  const std::span<const TokenId> guess = drafter.propose(most);
  return {guess.begin(), guess.end()};
}

TEST(Drafter, WhatFollowedTheLastTimeIsProposed) {
  Drafter drafter(64);
  drafter.reset(tokens({1, 2, 3, 4, 5, 6, 9, 1, 2}));
  EXPECT_TRUE(drafter.propose(4).empty());
  drafter.append(TokenId(3));
  EXPECT_EQ(proposed(drafter, 4), tokens({4, 5, 6, 9}));
  EXPECT_EQ(proposed(drafter, 2), tokens({4, 5}));
  EXPECT_TRUE(drafter.propose(0).empty());
}

TEST(Drafter, TheLatestOccurrenceCounts) {
  Drafter drafter(64);
  drafter.reset(tokens({1, 2, 3, 7, 1, 2, 3, 8, 1, 2, 3}));
  EXPECT_EQ(proposed(drafter, 1), tokens({8}));
}

TEST(Drafter, ARepeatingTextProposesItself) {
  Drafter drafter(64);
  drafter.reset(tokens({5, 5, 5, 5}));
  EXPECT_EQ(proposed(drafter, 4), tokens({5}));
}

TEST(Drafter, ShortTextsAndNewTextsProposeNothing) {
  Drafter drafter(64);
  drafter.reset({});
  for (std::int32_t i = 0; i < 64; ++i) {
    EXPECT_TRUE(drafter.propose(4).empty());
    drafter.append(TokenId(i));
  }
  drafter.reset(tokens({1, 2, 3}));
  EXPECT_TRUE(drafter.propose(4).empty()) << "an earlier text is forgotten";
}

TEST(DraftLength, NothingIsDraftedBeforeAStepWasTimed) {
  const DraftLength length;
  EXPECT_EQ(length.choose(), 0U);
}

TEST(DraftLength, RightGuessesThatCostLittleAreDraftedLong) {
  DraftLength length;
  length.note_step(0, 1.0);
  for (int i = 0; i < 50; ++i) length.note_guess(true);
  EXPECT_EQ(length.choose(), DraftLength::kMost);
}

TEST(DraftLength, WrongGuessesAreNotDrafted) {
  DraftLength length;
  length.note_step(0, 1.0);
  for (int i = 0; i < 50; ++i) length.note_guess(false);
  EXPECT_EQ(length.choose(), 0U);
}

TEST(DraftLength, DearStepsAreNotDraftedEvenIfAllGuessesAreRight) {
  DraftLength length;
  length.note_step(0, 1.0);
  for (int i = 0; i < 50; ++i) length.note_guess(true);
  for (std::size_t drafted = 1; drafted <= DraftLength::kMost; ++drafted) {
    length.note_step(drafted, 1.1 * static_cast<double>(drafted + 1));
  }
  EXPECT_EQ(length.choose(), 0U);
}

}  // namespace
}  // namespace cicada::engine
