// How many rows of prompts a step may compute, so that running answers keep their pace.
//
// A step without prompts shows what an answer's token costs alone; steps with prompts may stretch
// it by a factor. The rows that fit are learned from the steps' times: depth, batch and machine
// change them. Bits do not depend on the cut (docs/numerics.md).
// Threads: one thread.
#pragma once

#include <chrono>
#include <cstddef>

namespace cicada::engine {

struct StepBudgetOptions {
  double most_stretch = 2.2;  // of a step's time by prompts, where answers are running
  std::chrono::nanoseconds most_alone = std::chrono::milliseconds(200);  // where none are
  std::size_t min_rows = 4;
  std::size_t max_rows = 256;
};

class StepBudget {
 public:
  explicit StepBudget(const StepBudgetOptions& options)
      : options_(options),
        beside_rows_(static_cast<double>(options.min_rows)),
        alone_rows_(static_cast<double>(options.max_rows)) {}

  // Rows for the next step, beside so many answers.
  std::size_t rows(std::size_t num_answers) const;

  // What a step took: rows of prompts, and answers that got a token.
  void note(std::size_t prompt_rows, std::size_t num_answers, std::chrono::nanoseconds time);

 private:
  double adapted(double rows, double used, double time, double target) const;

  StepBudgetOptions options_;
  double answer_seconds_ = 0.0;  // of a step with answers only; 0: not seen yet
  double beside_rows_;
  double alone_rows_;
};

}  // namespace cicada::engine
