// What is known of the beginnings of texts: the tree in memory, and behind it a folder if there is
// one. Between both and a sequence that is about to be prefilled.
// Threads: one at a time, the pool's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "cicada/kv/prefix_store.h"
#include "cicada/kv/prefix_tree.h"
#include "cicada/kv/sequence.h"

namespace cicada::kv {

struct PrefixCounters {
  std::uint64_t lookups = 0;
  std::uint64_t looked_up_tokens = 0;
  std::uint64_t hit_tokens = 0;    // of these, found in memory or in the folder
  std::uint64_t loaded_pages = 0;  // from the folder
  std::uint64_t evictions = 0;     // of pages in memory
  std::uint64_t cached_pages = 0;  // now in memory
  std::uint64_t free_pages = 0;    // of the pool: neither cached nor a sequence's
};

class PrefixCache {
 public:
  // Lifetime: borrows the pool.
  explicit PrefixCache(PagePool& pool, std::optional<PrefixStore> store = std::nullopt)
      : pool_(&pool), tree_(pool), store_(std::move(store)) {}

  // Gives a sequence, which has `tokens` of `ids` computed in the prefill role already, the longest
  // known beginning of `ids`. Returns how many of them it has then; not fewer. Its pages may be
  // others' too: make_writable() before anything is computed.
  std::size_t extend(Sequence& sequence, std::size_t tokens, std::string_view salt,
                     std::span<const TokenId> ids);

  // Remembers the full pages of `ids`, all of which the sequence has, computed in the prefill role.
  void add(const Sequence& sequence, std::string_view salt, std::span<const TokenId> ids);

  // Writes those of them to the folder that are not there, if there is one.
  void save(const Sequence& sequence, std::string_view salt, std::span<const TokenId> ids);

  PrefixCounters counters() const;

 private:
  std::size_t load(Sequence& sequence, std::size_t tokens, std::string_view salt,
                   std::span<const TokenId> ids);

  PagePool* pool_;
  PrefixTree tree_;
  std::optional<PrefixStore> store_;
  PrefixCounters counters_;
};

}  // namespace cicada::kv
