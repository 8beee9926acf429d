#include "cicada/engine/step_budget.h"

#include <gtest/gtest.h>

namespace cicada::engine {
namespace {

using std::chrono::microseconds;

// A machine that needs `answers_us` for its answers and `row_us` for a row of a prompt.
void run(StepBudget& budget, std::size_t answers, int answers_us, int row_us, int steps) {
  for (int i = 0; i < steps; ++i) {
    const std::size_t rows = budget.rows(answers);
    budget.note(rows, answers, 0,
                microseconds((answers > 0 ? answers_us : 0) + row_us * static_cast<int>(rows)));
  }
}

// Rows once the budget does not want to measure anew.
std::size_t settled(StepBudget& budget, std::size_t answers, int answers_us) {
  if (budget.rows(answers) == 0) budget.note(0, answers, 0, microseconds(answers_us));
  return budget.rows(answers);
}

TEST(StepBudget, ATokenBesideAPromptTakesNoMoreThanTheStretch) {
  StepBudget budget({.most_stretch = 2.0});
  budget.note(0, 1, 0, microseconds(3000));
  run(budget, 1, 3000, 250, 50);
  const std::size_t rows = settled(budget, 1, 3000);
  EXPECT_LE(rows, 12U);  // 3 ms of prompts
  EXPECT_GE(rows, 10U);
}

TEST(StepBudget, ShrinksAtOnceWhenRowsGetDearer) {
  StepBudget budget({.most_stretch = 2.0});
  budget.note(0, 1, 0, microseconds(4000));
  run(budget, 1, 4000, 50, 50);
  EXPECT_GE(settled(budget, 1, 4000), 60U);
  run(budget, 1, 4000, 400, 1);
  EXPECT_LE(budget.rows(1), 10U);
}

TEST(StepBudget, AloneAPromptIsBoundedByTime) {
  StepBudget budget({.most_alone = std::chrono::milliseconds(100), .max_rows = 256});
  EXPECT_EQ(budget.rows(0), 256U);
  run(budget, 0, 0, 5000, 10);
  EXPECT_LE(budget.rows(0), 20U);
  run(budget, 0, 0, 100, 30);
  EXPECT_EQ(budget.rows(0), 256U);
}

TEST(StepBudget, WithoutAStepToCompareWithItGoesWithoutPrompts) {
  StepBudget budget({.min_rows = 4});
  EXPECT_EQ(budget.rows(2), 0U);
  budget.note(0, 2, 0, microseconds(1000));
  EXPECT_EQ(budget.rows(2), 4U);
  EXPECT_EQ(budget.rows(3), 0U) << "three cost something else";
}

TEST(StepBudget, OneSlowStepAllowsNoSlowOnes) {
  StepBudget budget({.most_stretch = 2.0});
  run(budget, 1, 3000, 250, 40);
  const std::size_t rows = settled(budget, 1, 3000);
  budget.note(0, 1, 0, microseconds(100000));
  run(budget, 1, 3000, 250, 5);
  EXPECT_LE(settled(budget, 1, 3000), rows + 3);
}

TEST(StepBudget, WhatIsOldIsMeasuredAgain) {
  StepBudget budget({.most_stretch = 2.0});
  run(budget, 1, 3000, 250, 20);
  int without = 0;
  for (int i = 0; i < 320; ++i) {
    if (budget.rows(1) == 0) ++without;
    run(budget, 1, 3000, 250, 1);
  }
  EXPECT_GE(without, 9);
  EXPECT_LE(without, 11);
}

TEST(StepBudget, AStepThatUsedLittleSaysNothingAboutMore) {
  StepBudget budget({.most_stretch = 2.0});
  budget.note(0, 1, 0, microseconds(3000));
  run(budget, 1, 3000, 250, 50);
  const std::size_t rows = settled(budget, 1, 3000);
  budget.note(1, 1, 0, microseconds(3250));
  EXPECT_EQ(budget.rows(1), rows);
}

// One answer beside prompts of seven others: its steps may take what they will with eight.
TEST(StepBudget, ManyThatWaitMayTakeFromThePaceThatTheFirstWillNotKeep) {
  StepBudget budget({.most_stretch = 1.5});
  budget.note(0, 8, 0, microseconds(12000));
  budget.note(0, 1, 0, microseconds(3000));
  for (int i = 0; i < 60; ++i) {
    const std::size_t rows = settled(budget, 1, 3000);
    budget.note(rows, 1, 7, microseconds(3000 + 250 * static_cast<int>(rows)));
  }
  EXPECT_LE(settled(budget, 1, 3000), 24U);  // half of 12 ms
  EXPECT_GE(settled(budget, 1, 3000), 20U);
  for (int i = 0; i < 5; ++i) {
    const std::size_t rows = settled(budget, 1, 3000);
    budget.note(rows, 1, 0, microseconds(3000 + 250 * static_cast<int>(rows)));
  }
  EXPECT_LE(settled(budget, 1, 3000), 6U) << "nobody waits any more: half of 3 ms";
}

}  // namespace
}  // namespace cicada::engine
