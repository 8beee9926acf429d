// How many rows of prompts a step may compute, so that running answers keep their pace.
//
// A step without prompts shows what the answers' tokens cost alone; prompts may add a share of what
// a step will cost once those whose prompts are waiting answer too: the first of many clients gets
// no better pace than it will have beside them all, and they come to their first tokens. What so
// many answers cost, and a row of a prompt beside them, is learned from the steps' times, since
// depth, batch and machine change both: where nothing is known of a number of answers, or it is
// old, a step goes without prompts. Bits do not depend on the cut (docs/numerics.md).
// Threads: one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cicada::engine {

struct StepBudgetOptions {
  double most_stretch = 1.75;  // of a step's time by prompts, where answers are running
  std::chrono::nanoseconds most_alone = std::chrono::milliseconds(200);  // where none are
  std::size_t min_rows = 1;
  std::size_t max_rows = 256;
};

class StepBudget {
 public:
  explicit StepBudget(const StepBudgetOptions& options)
      : options_(options),
        beside_rows_(static_cast<double>(options.min_rows)),
        alone_rows_(static_cast<double>(options.max_rows)) {}

  // Rows for the next step, beside so many answers; 0: it goes without prompts.
  std::size_t rows(std::size_t num_answers) const;

  // What a step took: rows of prompts, answers that got a token, and requests that will answer
  // beside them once their prompts are read.
  void note(std::size_t prompt_rows, std::size_t num_answers, std::size_t num_to_come,
            std::chrono::nanoseconds time);

 private:
  // Steps of so many answers without prompts.
  struct Alone {
    double seconds = 0.0;
    std::uint64_t step = 0;  // the last one
  };

  const Alone* known(std::size_t num_answers) const;
  // What a step of `num_answers` takes at least: that of the greatest known number up to it.
  double pace(std::size_t num_answers) const;
  double adapted(double rows, double used, double time, double target) const;

  StepBudgetOptions options_;
  std::vector<Alone> answers_;  // by their number
  double beside_rows_;
  double alone_rows_;
  std::uint64_t steps_ = 0;
};

}  // namespace cicada::engine
