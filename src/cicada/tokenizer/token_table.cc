#include "cicada/tokenizer/token_table.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>

#include "cicada/base/check.h"
#include "cicada/formats/quote.h"

namespace cicada::tokenizer {
namespace {

constexpr std::uint32_t kIdBits = 22;
constexpr std::uint32_t kIdMask = (1U << kIdBits) - 1;
static_assert(kMaxVocabularyTokens <= kIdMask);

// Folds the 128-bit product of its arguments: every bit of both reaches every bit of the result.
std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

constexpr std::uint64_t kOdd1 = 0x9E3779B97F4A7C15;
constexpr std::uint64_t kOdd2 = 0xD1B54A32D192ED03;

std::uint64_t hash_bytes(std::string_view text, std::uint64_t seed) {
  std::uint64_t hash = seed ^ (text.size() * kOdd2);
  const char* at = text.data();
  std::size_t left = text.size();
  for (; left >= sizeof(std::uint64_t); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof(word));
    hash = mix(hash ^ word, kOdd1);
    left -= sizeof(word);
  }
  std::uint64_t tail = 0;
  std::memcpy(&tail, at, left);
  return mix(hash ^ tail, kOdd2);
}

// Differs from run to run (address randomisation and the clock); the order of slots never shows.
std::uint64_t new_seed(const void* address) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return mix(std::bit_cast<std::uintptr_t>(address) ^ kOdd1, static_cast<std::uint64_t>(now) | 1U);
}

// A power of two that leaves at least two fifths of the slots empty: most look-ups find nothing and
// should learn so at the first or second slot.
std::size_t slots_for(std::size_t entries) {
  return std::bit_ceil(std::max<std::size_t>(8, entries + entries * 2 / 3 + 1));
}

}  // namespace

std::size_t TokenTable::slot_of(std::string_view text, std::uint32_t& tag) const {
  const std::uint64_t hash = hash_bytes(text, seed_);
  tag = static_cast<std::uint32_t>(hash >> (32 + kIdBits)) << kIdBits;
  return static_cast<std::size_t>(hash) & (slots_.size() - 1);
}

Result<TokenTable> TokenTable::build(std::span<const std::string_view> texts) {
  CICADA_CHECK(texts.size() <= kMaxVocabularyTokens, "vocabulary was bounded by its reader");
  TokenTable table;
  table.texts_ = texts;
  table.slots_.resize(slots_for(texts.size()));
  table.seed_ = new_seed(table.slots_.data());
  for (std::size_t id = 0; id < texts.size(); ++id) {
    const std::string_view text = texts[id];
    if (text.empty()) continue;
    table.max_token_bytes_ = std::max(table.max_token_bytes_, text.size());
    std::uint32_t tag = 0;
    std::size_t slot = table.slot_of(text, tag);
    for (; table.slots_[slot] != 0; slot = (slot + 1) & (table.slots_.size() - 1)) {
      const std::uint32_t other = (table.slots_[slot] & kIdMask) - 1;
      if ((table.slots_[slot] & ~kIdMask) == tag && texts[other] == text) {
        return fail(Code::kCorrupt, "tokens {} and {} are both '{}', each text may occur once",
                    other, id, formats::quote(text));
      }
    }
    table.slots_[slot] = tag | (static_cast<std::uint32_t>(id) + 1);
  }
  return table;
}

std::int32_t TokenTable::find(std::string_view text) const {
  if (text.empty() || text.size() > max_token_bytes_) return -1;
  std::uint32_t tag = 0;
  std::size_t slot = slot_of(text, tag);
  for (; slots_[slot] != 0; slot = (slot + 1) & (slots_.size() - 1)) {
    if ((slots_[slot] & ~kIdMask) != tag) continue;
    const std::uint32_t id = (slots_[slot] & kIdMask) - 1;
    if (texts_[id] == text) return static_cast<std::int32_t>(id);
  }
  return -1;
}

MergeTable::MergeTable(std::size_t max_merges) {
  merges_.reserve(max_merges);
  slots_.resize(slots_for(max_merges));
  seed_ = new_seed(slots_.data());
}

std::size_t MergeTable::slot_of(std::int32_t left, std::int32_t right) const {
  const std::uint64_t pair = (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32) |
                             static_cast<std::uint32_t>(right);
  return static_cast<std::size_t>(mix(pair ^ seed_, kOdd1)) & (slots_.size() - 1);
}

void MergeTable::insert(const Merge& merge) {
  if (find(merge.left, merge.right) >= 0) return;
  std::size_t slot = slot_of(merge.left, merge.right);
  while (slots_[slot] != 0) slot = (slot + 1) & (slots_.size() - 1);
  merges_.push_back(merge);
  slots_[slot] = static_cast<std::uint32_t>(merges_.size());
}

std::int32_t MergeTable::find(std::int32_t left, std::int32_t right) const {
  std::size_t slot = slot_of(left, right);
  for (; slots_[slot] != 0; slot = (slot + 1) & (slots_.size() - 1)) {
    const std::uint32_t rank = slots_[slot] - 1;
    if (merges_[rank].left == left && merges_[rank].right == right) {
      return static_cast<std::int32_t>(rank);
    }
  }
  return -1;
}

}  // namespace cicada::tokenizer
