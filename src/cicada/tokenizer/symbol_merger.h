// The merging that BPE and SPM share: a row of symbols in which, again and again, the best pair of
// neighbours becomes one symbol, until no pair may be joined. A linked list and a heap: O(n log n)
// in the number of symbols, no recursion.
// Threads: one thread; kept between words so that its memory is reused.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace cicada::tokenizer {

struct Symbol {
  std::uint32_t begin_bytes = 0;  // in the text that is being merged
  std::uint32_t size_bytes = 0;   // 0: was joined to its left neighbour
  std::int32_t prev = -1;         // indices of neighbours; -1: none
  std::int32_t next = -1;
  std::int32_t id = -1;  // the token it is, where the caller knows
};

// What two neighbours may become; the lowest priority is done first, among equals the leftmost.
struct PairResult {
  std::uint32_t priority = 0;
  std::int32_t id = -1;
};

class SymbolMerger {
 public:
  void clear() { symbols_.clear(); }

  // Appends a symbol; at most 2^31 − 1 symbols and bytes (the caller cuts longer texts).
  void add(std::uint32_t size_bytes, std::int32_t id) {
    const auto idx = static_cast<std::int32_t>(symbols_.size());
    const std::uint32_t begin =
        idx == 0 ? 0 : symbols_.back().begin_bytes + symbols_.back().size_bytes;
    if (idx != 0) symbols_.back().next = idx;
    symbols_.push_back({begin, size_bytes, idx - 1, -1, id});
  }

  // `find_pair(left, right)` → std::optional<PairResult>, a pure function of the two symbols.
  template <typename FindPair>
  void merge(FindPair&& find_pair) {
    heap_.clear();
    for (std::size_t i = 0; i + 1 < symbols_.size(); ++i) {
      if (const auto candidate = candidate_at(static_cast<std::int32_t>(i), find_pair)) {
        heap_.push_back(*candidate);
      }
    }
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
    while (!heap_.empty()) {
      const Candidate best = heap_.front();
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      heap_.pop_back();
      if (!join(best)) continue;
      const auto left = static_cast<std::int32_t>(best.left);
      push(symbols_[best.left].prev, find_pair);
      push(left, find_pair);
    }
  }

  // Calls `visit(symbol)` for what is left, in order.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (std::int32_t i = symbols_.empty() ? -1 : 0; i >= 0;) {
      const Symbol& symbol = symbols_[static_cast<std::size_t>(i)];
      visit(symbol);
      i = symbol.next;
    }
  }

 private:
  struct Candidate {
    std::uint32_t priority = 0;
    std::uint32_t left = 0;        // index of the left symbol
    std::uint32_t size_bytes = 0;  // of the joined symbol, to tell that it is out of date
    std::int32_t id = -1;

    bool operator>(const Candidate& other) const {
      return priority != other.priority ? priority > other.priority : left > other.left;
    }
  };

  template <typename FindPair>
  std::optional<Candidate> candidate_at(std::int32_t left, FindPair& find_pair) {
    const Symbol& a = symbols_[static_cast<std::size_t>(left)];
    if (a.next < 0) return std::nullopt;
    const Symbol& b = symbols_[static_cast<std::size_t>(a.next)];
    const std::optional<PairResult> pair = find_pair(a, b);
    if (!pair) return std::nullopt;
    return Candidate{pair->priority, static_cast<std::uint32_t>(left), a.size_bytes + b.size_bytes,
                     pair->id};
  }

  template <typename FindPair>
  void push(std::int32_t left, FindPair& find_pair) {
    if (left < 0) return;
    if (const auto candidate = candidate_at(left, find_pair)) {
      heap_.push_back(*candidate);
      std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
    }
  }

  // False when one of the two was joined to something else since the candidate was found. Symbols
  // only grow, so an equal sum of sizes means that both are unchanged.
  bool join(const Candidate& candidate) {
    Symbol& left = symbols_[candidate.left];
    if (left.size_bytes == 0 || left.next < 0) return false;
    Symbol& right = symbols_[static_cast<std::size_t>(left.next)];
    if (left.size_bytes + right.size_bytes != candidate.size_bytes) return false;
    left.size_bytes = candidate.size_bytes;
    left.id = candidate.id;
    left.next = right.next;
    if (right.next >= 0) {
      symbols_[static_cast<std::size_t>(right.next)].prev =
          static_cast<std::int32_t>(candidate.left);
    }
    right.size_bytes = 0;
    return true;
  }

  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
};

}  // namespace cicada::tokenizer
