#include "cicada/kv/prefix_cache.h"

#include <string>

namespace cicada::kv {

std::size_t PrefixCache::extend(Sequence& sequence, std::size_t tokens, std::string_view salt,
                                std::span<const TokenId> ids) {
  const PrefixMatch match = tree_.find(salt, ids);
  if (match.tokens > tokens) {
    sequence.truncate(0);
    sequence.share(match.pages);
    tokens = match.tokens;
  }
  tokens = load(sequence, tokens, salt, ids);
  ++counters_.lookups;
  counters_.looked_up_tokens += ids.size();
  counters_.hit_tokens += tokens;
  return tokens;
}

// Replaces what the sequence has from its first page on that is not full.
std::size_t PrefixCache::load(Sequence& sequence, std::size_t tokens, std::string_view salt,
                              std::span<const TokenId> ids) {
  if (!store_) return tokens;
  const std::size_t size = pool_->layout().page_tokens();
  const std::size_t known = tokens / size;
  store_->begin_text();
  auto key = store_->root_key(salt);
  std::size_t page = 0;
  for (; key && (page + 1) * size <= ids.size(); ++page) {
    const auto page_ids = ids.subspan(page * size, size);
    key = PrefixStore::next_key(*key, page_ids);
    if (page < known) continue;
    if (!key || !store_->contains(*key)) break;
    const auto id = pool_->allocate();
    if (!id) break;
    const bool is_loaded =
        store_->load(*key, page_ids, page, {pool_->page(*id), pool_->layout().page_bytes()});
    if (is_loaded) {
      sequence.truncate(page * size);
      sequence.share({&*id, 1});
      ++counters_.loaded_pages;
    }
    pool_->release(*id);
    if (!is_loaded) break;
  }
  if (page <= known) return tokens;
  add(sequence, salt, ids.first(page * size));
  return page * size;
}

void PrefixCache::add(const Sequence& sequence, std::string_view salt,
                      std::span<const TokenId> ids) {
  const std::size_t pages = ids.size() / pool_->layout().page_tokens();
  tree_.insert(salt, ids.first(pages * pool_->layout().page_tokens()),
               sequence.pages().first(pages));
}

void PrefixCache::save(const Sequence& sequence, std::string_view salt,
                       std::span<const TokenId> ids) {
  if (!store_) return;
  store_->begin_text();
  const std::size_t size = pool_->layout().page_tokens();
  auto key = store_->root_key(salt);
  for (std::size_t page = 0; key && store_->is_writable() && (page + 1) * size <= ids.size();
       ++page) {
    const auto page_ids = ids.subspan(page * size, size);
    key = PrefixStore::next_key(*key, page_ids);
    if (!key) break;
    store_->save(*key, page_ids, page,
                 {pool_->page(sequence.pages()[page]), pool_->layout().page_bytes()});
  }
}

PrefixCounters PrefixCache::counters() const {
  PrefixCounters counters = counters_;
  counters.evictions = tree_.num_evictions();
  counters.cached_pages = tree_.num_pages();
  counters.free_pages = pool_->num_free();
  return counters;
}

}  // namespace cicada::kv
