#include "cicada/engine/step_budget.h"

#include <algorithm>

namespace cicada::engine {
namespace {

// A slow step of a busy machine is no reason to believe that all will be slow.
constexpr double kMemory = 0.9;
// Rows grow slowly and shrink at once: a stretched step is what this is here to prevent.
constexpr double kGrowth = 1.25;

}  // namespace

std::size_t StepBudget::rows(std::size_t num_answers) const {
  const double rows = num_answers > 0 ? beside_rows_ : alone_rows_;
  return std::clamp(static_cast<std::size_t>(rows), options_.min_rows, options_.max_rows);
}

double StepBudget::adapted(double rows, double used, double time, double target) const {
  const double fitting = used * target / std::max(time, 1e-9);
  // A step that had fewer rows than allowed says nothing about more of them.
  if (time <= target && used + 1.0 < rows) return rows;
  return std::clamp(std::min(fitting, rows * kGrowth), static_cast<double>(options_.min_rows),
                    static_cast<double>(options_.max_rows));
}

void StepBudget::note(std::size_t prompt_rows, std::size_t num_answers,
                      std::chrono::nanoseconds time) {
  const double seconds = std::chrono::duration<double>(time).count();
  if (prompt_rows == 0) {
    if (num_answers == 0) return;
    answer_seconds_ =
        answer_seconds_ == 0.0 ? seconds : kMemory * answer_seconds_ + (1.0 - kMemory) * seconds;
    return;
  }
  const auto used = static_cast<double>(prompt_rows);
  if (num_answers == 0) {
    alone_rows_ = adapted(alone_rows_, used, seconds,
                          std::chrono::duration<double>(options_.most_alone).count());
    return;
  }
  if (answer_seconds_ == 0.0) return;  // nothing to compare with yet: the fewest rows
  // The answers' part of the step is there whatever the rows: only the rest scales with them.
  const double target = answer_seconds_ * (options_.most_stretch - 1.0);
  beside_rows_ = adapted(beside_rows_, used, std::max(seconds - answer_seconds_, 0.0), target);
}

}  // namespace cicada::engine
