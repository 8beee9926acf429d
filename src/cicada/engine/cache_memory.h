// The memory of keys and values of those that answer: whether it fits, how many pages, and the
// folder of prefixes behind them.
// Threads: pure functions but for the memory that they take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "cicada/base/result.h"
#include "cicada/kv/page_pool.h"
#include "cicada/kv/prefix_store.h"
#include "cicada/model/model.h"

namespace cicada::engine {

// Whether keys and values of `context` tokens can be held. Errors: kOutOfMemory with the bytes
// needed and free, and the tokens that fit.
Result<void> check_cache_fits(const kv::KvLayout& layout, std::size_t context,
                              std::uint64_t available_bytes);

// Pages for a context and, beyond it, for prefixes of earlier prompts: a quarter of the memory that
// is then still free, and at most a million tokens. Memory is taken as pages are used, so what is
// not cached costs nothing; a quarter leaves room for another three that think the same.
std::size_t default_pool_pages(const kv::KvLayout& layout, std::size_t context,
                               std::uint64_t available_bytes);

// Pages that so many bytes hold. Errors: kInvalidArgument with the bytes that a context needs,
// where it does not fit.
Result<std::size_t> pool_pages_in(const kv::KvLayout& layout, std::size_t context,
                                  std::uint64_t bytes);

struct CacheOptions {
  std::size_t context = 0;  // tokens of a prompt and its answer
  std::size_t page_tokens = kv::kPageTokens;
  std::size_t pool_pages = 0;  // 0: default_pool_pages()
  // Where prefixes outlive the process. The numerics_id of it is filled in here.
  std::optional<kv::PrefixStoreOptions> prefix_store;
};

struct CacheMemory {
  std::unique_ptr<kv::PagePool> pool;  // at a fixed address: others borrow it
  std::optional<kv::PrefixStore> store;

  // Errors: those of check_cache_fits(); kInvalidArgument for another page size; those of
  // PrefixStore::open.
  static Result<CacheMemory> create(const model::Model& model, const CacheOptions& options);
};

}  // namespace cicada::engine
