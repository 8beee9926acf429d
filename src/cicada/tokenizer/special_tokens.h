// Special tokens in text: cuts a text into stretches of plain text and tokens that are matched as a
// whole, before anything else is tokenised. User-defined tokens are always matched, control tokens
// only where the caller asks.
// Lifetime: borrows the vocabulary's texts and types.
// Threads: read-only after construction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cicada/base/result.h"
#include "cicada/tokenizer/tokenizer.h"
#include "cicada/tokenizer/vocabulary.h"

namespace cicada::tokenizer {

// A piece of a text: a token, or (id < 0) plain text.
struct Fragment {
  std::string_view text;
  std::int32_t id = -1;
};

class SpecialTokens {
 public:
  // Inclusive; bounds the work per byte of text. The longest known one has 40 bytes.
  static constexpr std::size_t kMaxBytes = 1024;

  // Errors: kUnsupported names a special token that is longer than kMaxBytes.
  static Result<SpecialTokens> build(const Vocabulary& vocabulary);

  // The longest token of the whole text is taken first, then the next longest in what is left, the
  // leftmost among equals (as llama.cpp does). O(n log n) in the text for a given vocabulary.
  std::vector<Fragment> partition(std::string_view text, const EncodeOptions& options) const;

 private:
  struct Match {
    std::size_t begin = 0;
    std::size_t size_bytes = 0;  // 0: none
    std::int32_t id = -1;
  };
  // Longest first, then leftmost: the top of a heap ordered by it.
  struct TakenLater {
    bool operator()(const Match& a, const Match& b) const {
      return a.size_bytes != b.size_bytes ? a.size_bytes < b.size_bytes : a.begin > b.begin;
    }
  };
  // A match and where the text after it goes on, which is behind the white space it eats.
  struct Taken {
    Match match;
    std::size_t end = 0;
  };

  Match longest_at(std::string_view text, std::size_t pos, std::size_t max_bytes,
                   const EncodeOptions& options) const;
  bool eats_spaces(std::int32_t id) const;
  std::vector<Taken> take(std::string_view text, const EncodeOptions& options) const;

  std::span<const std::string_view> texts_;
  std::span<const TokenType> types_;
  std::vector<std::int32_t> sorted_;  // ids of special tokens in the order of their texts
  std::array<std::uint32_t, 257> first_byte_{};  // sorted_ [b] to [b + 1] begin with byte b
  bool has_user_defined_ = false;
  bool specials_eat_spaces_ = false;
};

}  // namespace cicada::tokenizer
