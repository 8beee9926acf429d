#include "cicada/engine/step_budget.h"

#include <algorithm>

namespace cicada::engine {
namespace {

// A slow step of a busy machine is no reason to believe that all will be slow.
constexpr double kMemory = 0.7;
constexpr double kMostRise = 1.3;
// Rows grow slowly and shrink at once: a stretched step is what this is here to prevent.
constexpr double kGrowth = 1.25;
// After so many steps what was measured without prompts is measured again.
constexpr std::uint64_t kOld = 32;

}  // namespace

const StepBudget::Alone* StepBudget::known(std::size_t num_answers) const {
  if (num_answers >= answers_.size()) return nullptr;
  const Alone& alone = answers_[num_answers];
  return alone.seconds > 0.0 ? &alone : nullptr;
}

double StepBudget::pace(std::size_t num_answers) const {
  for (std::size_t n = num_answers; n > 0; --n) {
    if (const Alone* alone = known(n)) return alone->seconds;
  }
  return 0.0;
}

std::size_t StepBudget::rows(std::size_t num_answers) const {
  const auto bounded = [this](double rows) {
    return std::clamp(static_cast<std::size_t>(rows), options_.min_rows, options_.max_rows);
  };
  if (num_answers == 0) return bounded(alone_rows_);
  const Alone* alone = known(num_answers);
  if (alone == nullptr || steps_ - alone->step > kOld) return 0;
  return bounded(beside_rows_);
}

double StepBudget::adapted(double rows, double used, double time, double target) const {
  const double fitting = used * target / std::max(time, 1e-9);
  // A step that had fewer rows than allowed says nothing about more of them.
  if (time <= target && used + 1.0 < rows) return rows;
  return std::clamp(std::min(fitting, rows * kGrowth), static_cast<double>(options_.min_rows),
                    static_cast<double>(options_.max_rows));
}

void StepBudget::note(std::size_t prompt_rows, std::size_t num_answers, std::size_t num_to_come,
                      std::chrono::nanoseconds time) {
  ++steps_;
  const double seconds = std::chrono::duration<double>(time).count();
  const auto used = static_cast<double>(prompt_rows);
  if (num_answers == 0) {
    alone_rows_ = adapted(alone_rows_, used, seconds,
                          std::chrono::duration<double>(options_.most_alone).count());
    return;
  }
  if (prompt_rows == 0) {
    if (num_answers >= answers_.size()) answers_.resize(num_answers + 1);
    Alone& alone = answers_[num_answers];
    // A step during which the machine was busy with something else must not count for much: the
    // next ones would be allowed as long.
    const double believed =
        alone.seconds > 0.0 ? std::min(seconds, kMostRise * alone.seconds) : seconds;
    alone.seconds =
        alone.seconds > 0.0 ? kMemory * alone.seconds + (1.0 - kMemory) * believed : seconds;
    alone.step = steps_;
    return;
  }
  const Alone* alone = known(num_answers);
  if (alone == nullptr) return;
  // The answers' part of the step is there whatever the rows: only the rest scales with them.
  const double target = pace(num_answers + num_to_come) * (options_.most_stretch - 1.0);
  beside_rows_ = adapted(beside_rows_, used, std::max(seconds - alone->seconds, 0.0), target);
}

}  // namespace cicada::engine
