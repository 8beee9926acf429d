#include "cicada/tokenizer/special_tokens.h"

#include <algorithm>
#include <queue>
#include <ranges>
#include <utility>

namespace cicada::tokenizer {
namespace {

// How many bytes a control token may have at `pos`: none inside a plain range or where control
// tokens were not asked for, else up to the next plain range.
std::size_t control_room(const EncodeOptions& options, std::size_t pos, std::size_t text_bytes) {
  if (!options.parse_special) return 0;
  const auto next = std::ranges::upper_bound(options.plain_ranges, pos, {}, &ByteRange::end);
  if (next == options.plain_ranges.end()) return text_bytes - pos;
  return next->begin <= pos ? 0 : next->begin - pos;
}

bool is_white_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

}  // namespace

Result<SpecialTokens> SpecialTokens::build(const Vocabulary& vocabulary) {
  SpecialTokens specials;
  specials.texts_ = vocabulary.texts;
  specials.types_ = vocabulary.types;
  specials.specials_eat_spaces_ = vocabulary.specials_eat_spaces;
  for (std::size_t id = 0; id < vocabulary.texts.size(); ++id) {
    const TokenType type = vocabulary.types[id];
    const std::size_t size_bytes = vocabulary.texts[id].size();
    if (size_bytes == 0 || (!is_special(type) && type != TokenType::kUserDefined)) continue;
    if (size_bytes > kMaxBytes) {
      return fail(Code::kUnsupported, "token {}: a special token of {} bytes, at most {}", id,
                  size_bytes, kMaxBytes);
    }
    specials.has_user_defined_ |= type == TokenType::kUserDefined;
    specials.sorted_.push_back(static_cast<std::int32_t>(id));
  }
  const auto text_of = [&](std::int32_t id) {
    return specials.texts_[static_cast<std::size_t>(id)];
  };
  std::ranges::sort(specials.sorted_, {}, text_of);
  for (const std::int32_t id : specials.sorted_) {
    ++specials.first_byte_[static_cast<std::uint8_t>(text_of(id)[0]) + 1U];
  }
  for (std::size_t b = 1; b < specials.first_byte_.size(); ++b) {
    specials.first_byte_[b] += specials.first_byte_[b - 1];
  }
  return specials;
}

// Narrows the sorted tokens byte by byte to those that agree with the text so far; the one that
// ends here, if any, is the first of them.
SpecialTokens::Match SpecialTokens::longest_at(std::string_view text, std::size_t pos,
                                               std::size_t max_bytes,
                                               const EncodeOptions& options) const {
  const auto first = static_cast<std::uint8_t>(text[pos]);
  auto low = sorted_.begin() + first_byte_[first];
  auto high = sorted_.begin() + first_byte_[first + 1U];
  if (low == high) return {};
  const std::size_t max_control_bytes = control_room(options, pos, text.size());
  const auto text_of = [&](std::int32_t id) { return texts_[static_cast<std::size_t>(id)]; };
  Match longest;
  for (std::size_t depth = 1; depth <= max_bytes && low != high; ++depth) {
    if (text_of(*low).size() == depth) {
      const bool user_defined = types_[static_cast<std::size_t>(*low)] == TokenType::kUserDefined;
      if (user_defined || depth <= max_control_bytes) longest = {pos, depth, *low};
      ++low;
    }
    if (pos + depth == text.size()) break;
    const auto byte_of = [&](std::int32_t id) {
      return static_cast<std::uint8_t>(text_of(id)[depth]);
    };
    const auto agreeing = std::ranges::equal_range(
        low, high, static_cast<std::uint8_t>(text[pos + depth]), {}, byte_of);
    low = agreeing.begin();
    high = agreeing.end();
  }
  return longest;
}

// Phi-3's own tokenizer strips white space after its marks, with these exceptions; its files do not
// say so.
bool SpecialTokens::eats_spaces(std::int32_t id) const {
  if (!specials_eat_spaces_) return false;
  const std::string_view text = texts_[static_cast<std::size_t>(id)];
  return text != "<unk>" && text != "<s>" && text != "<|endoftext|>";
}

std::vector<SpecialTokens::Taken> SpecialTokens::take(std::string_view text,
                                                      const EncodeOptions& options) const {
  std::vector<Match> longest;
  for (std::size_t pos = 0; pos < text.size(); ++pos) {
    const Match match = longest_at(text, pos, kMaxBytes, options);
    if (match.size_bytes != 0) longest.push_back(match);
  }
  if (longest.empty()) return {};
  std::vector<Taken> taken;
  std::vector<bool> claimed(text.size());
  std::priority_queue<Match, std::vector<Match>, TakenLater> queue(TakenLater(),
                                                                   std::move(longest));
  while (!queue.empty()) {
    const Match match = queue.top();
    queue.pop();
    if (claimed[match.begin]) continue;
    // What was claimed before is at least as long as this match, so what overlaps its right part
    // reaches to its end: the claimed bytes in it are a suffix.
    const std::size_t last = match.begin + match.size_bytes - 1;
    if (claimed[last]) {
      const auto offsets = std::views::iota(std::size_t{1}, match.size_bytes);
      const std::size_t free_bytes = *std::ranges::partition_point(
          offsets, [&](std::size_t offset) { return !claimed[match.begin + offset]; });
      const Match shorter = longest_at(text, match.begin, free_bytes, options);
      if (shorter.size_bytes != 0) queue.push(shorter);
      continue;
    }
    std::size_t end = last + 1;
    if (eats_spaces(match.id)) {
      while (end < text.size() && !claimed[end] && is_white_space(text[end])) ++end;
    }
    std::fill(claimed.begin() + static_cast<std::ptrdiff_t>(match.begin),
              claimed.begin() + static_cast<std::ptrdiff_t>(end), true);
    taken.push_back({match, end});
  }
  std::ranges::sort(taken, {}, [](const Taken& t) { return t.match.begin; });
  return taken;
}

std::vector<Fragment> SpecialTokens::partition(std::string_view text,
                                               const EncodeOptions& options) const {
  std::vector<Fragment> fragments;
  std::size_t pos = 0;
  if (has_user_defined_ || (options.parse_special && !sorted_.empty())) {
    for (const Taken& taken : take(text, options)) {
      const Match& match = taken.match;
      if (match.begin != pos) fragments.push_back({text.substr(pos, match.begin - pos)});
      fragments.push_back({text.substr(match.begin, match.size_bytes), match.id});
      pos = taken.end;
    }
  }
  if (pos != text.size()) fragments.push_back({text.substr(pos)});
  return fragments;
}

}  // namespace cicada::tokenizer
