// Flat hash tables of a vocabulary: from a token's text to its id, and from a pair of ids to the
// merge that joins them. Open addressing, four bytes a slot, seeded so that a crafted file cannot
// choose its collisions.
// Threads: read-only after construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cicada/base/result.h"

namespace cicada::tokenizer {

// Inclusive; the largest known vocabulary has 262144 tokens.
inline constexpr std::size_t kMaxVocabularyTokens = (std::size_t{1} << 22) - 1;

class TokenTable {
 public:
  TokenTable() = default;

  // `texts` [tokens] is borrowed for the life of the table; at most kMaxVocabularyTokens (checked).
  // Empty texts are not entered. Errors: kCorrupt when two tokens have the same text.
  static Result<TokenTable> build(std::span<const std::string_view> texts);

  // The id, or -1.
  std::int32_t find(std::string_view text) const;

  std::size_t max_token_bytes() const { return max_token_bytes_; }

 private:
  std::size_t slot_of(std::string_view text, std::uint32_t& tag) const;

  std::span<const std::string_view> texts_;
  // 0: empty; else id + 1 in the low 22 bits and a tag of the hash above them, so that a probe
  // seldom has to look at a text that differs.
  std::vector<std::uint32_t> slots_;
  std::uint64_t seed_ = 0;
  std::size_t max_token_bytes_ = 0;
};

// One rule of BPE: `left` and `right` side by side become `result`.
struct Merge {
  std::int32_t left = -1;
  std::int32_t right = -1;
  std::int32_t result = -1;
};

class MergeTable {
 public:
  // Sizes the table for `max_merges` insertions.
  explicit MergeTable(std::size_t max_merges);

  // Gives the rule the next rank; does nothing when the pair has a rule already.
  void insert(const Merge& merge);

  // The rank (0 is applied first), or -1 when there is no rule for the pair.
  std::int32_t find(std::int32_t left, std::int32_t right) const;
  const Merge& at(std::int32_t rank) const { return merges_[static_cast<std::size_t>(rank)]; }
  std::size_t size() const { return merges_.size(); }

 private:
  std::size_t slot_of(std::int32_t left, std::int32_t right) const;

  std::vector<Merge> merges_;
  std::vector<std::uint32_t> slots_;  // 0: empty; else rank + 1
  std::uint64_t seed_ = 0;
};

}  // namespace cicada::tokenizer
