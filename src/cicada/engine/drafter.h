// Guesses the next tokens from the text so far: what followed the last time that the latest tokens
// stood there. Whether a guess is right the model says; a wrong one costs time and nothing else.
// Threads: one at a time. Nothing is allocated after construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cicada/base/ids.h"

namespace cicada::engine {

class Drafter {
 public:
  // How many tokens must stand there again.
  static constexpr std::size_t kGram = 3;

  // For texts of at most `context` tokens.
  explicit Drafter(std::size_t context);

  // Starts with the text of a prompt, at most `context` tokens.
  void reset(std::span<const TokenId> text);
  // Appends a token; the text stays within `context`.
  void append(TokenId token);

  // At most `most` tokens that may come next; valid until the next append() or reset().
  std::span<const TokenId> propose(std::size_t most) const;

 private:
  std::size_t slot_of_end(std::size_t end) const;

  std::vector<TokenId> text_;
  std::vector<std::uint32_t>
      ends_;  // hash of a gram -> where its last occurrence ended; 0: nowhere
};

// How many tokens to draft, from what steps cost and how often guesses were right: as many as give
// the most tokens in a time, or none. Only speed depends on it.
class DraftLength {
 public:
  static constexpr std::size_t kMost = 7;  // drafted tokens in a step

  std::size_t choose() const;
  // A step with `drafted` guesses took `seconds`.
  void note_step(std::size_t drafted, double seconds);
  // A guess, run or not, for a token whose predecessors are known was right, or not.
  void note_guess(bool was_right);

 private:
  double seconds_[kMost + 1] = {};  // of a step with so many guesses, smoothed; 0: not yet known
  double right_ = 0.5;              // share of guesses that were right, smoothed
};

}  // namespace cicada::engine
