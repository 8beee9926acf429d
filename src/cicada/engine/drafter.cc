#include "cicada/engine/drafter.h"

#include <algorithm>
#include <bit>

#include "cicada/base/check.h"

namespace cicada::engine {
namespace {

// What a step with a guess more costs, of a step without any, until it was measured.
constexpr double kFirstCost = 0.2;
constexpr double kSmoothing = 0.1;

double smoothed(double old, double now) { return old + kSmoothing * (now - old); }

}  // namespace

Drafter::Drafter(std::size_t context) : ends_(std::bit_ceil(2 * context + 2), 0) {
  text_.reserve(context);
}

void Drafter::reset(std::span<const TokenId> text) {
  text_.clear();
  std::fill(ends_.begin(), ends_.end(), 0);
  for (const TokenId token : text) append(token);
}

// The gram that ends at `end` is noted only when a token follows it, so that it is never found as
// its own earlier occurrence. A gram that falls on the slot of another takes it: guesses are
// checked.
void Drafter::append(TokenId token) {
  CICADA_CHECK(text_.size() < text_.capacity(), "the text stays within the context");
  if (text_.size() >= kGram) {
    ends_[slot_of_end(text_.size())] = static_cast<std::uint32_t>(text_.size());
  }
  text_.push_back(token);
}

std::span<const TokenId> Drafter::propose(std::size_t most) const {
  if (text_.size() <= kGram) return {};
  const std::size_t end = ends_[slot_of_end(text_.size())];
  if (end == 0) return {};
  const auto last = std::span(text_).last(kGram);
  if (!std::equal(last.begin(), last.end(),
                  text_.begin() + static_cast<std::ptrdiff_t>(end - kGram))) {
    return {};
  }
  return std::span(text_).subspan(end, std::min(most, text_.size() - end));
}

std::size_t Drafter::slot_of_end(std::size_t end) const {
  std::uint64_t hash = 0;
  for (std::size_t i = end - kGram; i < end; ++i) {
    hash = (hash ^ static_cast<std::uint32_t>(text_[i].value)) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 29U;
  }
  return hash & (ends_.size() - 1);
}

std::size_t DraftLength::choose() const {
  if (seconds_[0] == 0.0) return 0;
  std::size_t best = 0;
  double best_rate = 1.0 / seconds_[0];
  double expected = 1.0;  // tokens of the step
  double chance = 1.0;    // that all guesses so far are right
  double slowest = 0.0;   // of the steps that were run, up to this length
  for (std::size_t drafted = 1; drafted <= kMost; ++drafted) {
    chance *= right_;
    expected += chance;
    // A length that was never run costs at least what a shorter one was seen to.
    slowest = std::max(slowest, seconds_[drafted]);
    const double assumed = seconds_[0] * (1.0 + kFirstCost * static_cast<double>(drafted));
    const double seconds =
        seconds_[drafted] != 0.0 ? seconds_[drafted] : std::max(assumed, slowest);
    if (expected / seconds <= best_rate) continue;
    best = drafted;
    best_rate = expected / seconds;
  }
  return best;
}

void DraftLength::note_step(std::size_t drafted, double seconds) {
  double& known = seconds_[drafted];
  known = known == 0.0 ? seconds : smoothed(known, seconds);
}

void DraftLength::note_guess(bool was_right) { right_ = smoothed(right_, was_right ? 1.0 : 0.0); }

}  // namespace cicada::engine
