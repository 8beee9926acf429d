#include "cicada/engine/cache_memory.h"

#include <algorithm>
#include <utility>

#include "cicada/platform/resources.h"

namespace cicada::engine {

Result<void> check_cache_fits(const kv::KvLayout& layout, std::size_t context,
                              std::uint64_t available_bytes) {
  const std::size_t per_token = layout.bytes_per_token();
  if (context <= available_bytes / std::max<std::size_t>(1, per_token)) return {};
  const std::uint64_t fitting =
      available_bytes / per_token / layout.page_tokens() * layout.page_tokens();
  return fail(
      Code::kOutOfMemory,
      "a context of {} tokens needs {:.0f} bytes for keys and values ({} a token), {} bytes are "
      "free: {} tokens fit",
      context, static_cast<double>(context) * static_cast<double>(per_token), per_token,
      available_bytes, fitting);
}

std::size_t default_pool_pages(const kv::KvLayout& layout, std::size_t context,
                               std::uint64_t available_bytes) {
  constexpr std::size_t kMostCachedTokens = std::size_t{1} << 20;
  constexpr std::uint64_t kShare = 4;  // one part in four
  // One more than the context fills: a shared page and its copy are there at once.
  const std::uint64_t needed = layout.pages_of(context) + 1;
  const std::uint64_t page_bytes = std::max<std::size_t>(1, layout.page_bytes());
  const std::uint64_t fitting = available_bytes / page_bytes;
  const std::uint64_t spare = fitting > needed ? (fitting - needed) / kShare : 0;
  return needed + std::min<std::uint64_t>(spare, kMostCachedTokens / layout.page_tokens());
}

Result<std::size_t> pool_pages_in(const kv::KvLayout& layout, std::size_t context,
                                  std::uint64_t bytes) {
  const std::uint64_t page_bytes = layout.page_bytes();
  const std::uint64_t pages = bytes / page_bytes;
  const std::uint64_t needed = layout.pages_of(context) + 1;
  if (pages >= needed) return static_cast<std::size_t>(pages);
  const std::uint64_t fitting = pages > 1 ? (pages - 1) * layout.page_tokens() : 0;
  return fail(Code::kInvalidArgument,
              "{} bytes for keys and values: one request of {} tokens needs {}, a context of {} "
              "would fit",
              bytes, context, needed * page_bytes, fitting);
}

Result<CacheMemory> CacheMemory::create(const model::Model& model, const CacheOptions& options) {
  CICADA_TRY(kv::check_page_tokens(options.page_tokens));
  const kv::KvLayout layout = model.kv_layout(options.page_tokens);
  const std::uint64_t available = platform::available_memory_bytes();
  CICADA_TRY(check_cache_fits(layout, options.context, available));
  CacheMemory cache;
  if (options.prefix_store) {
    kv::PrefixStoreOptions store_options = *options.prefix_store;
    store_options.numerics_id = model.numerics_id();
    auto opened = kv::PrefixStore::open(layout, std::move(store_options));
    if (!opened) return fail(std::move(opened).error().with_context("prefix cache"));
    cache.store = std::move(*opened);
  }
  const std::size_t pages = options.pool_pages != 0
                                ? options.pool_pages
                                : default_pool_pages(layout, options.context, available);
  auto pool = kv::PagePool::create(layout, pages);
  // Address space may be scarcer than memory: then nothing but the context is cached.
  if (!pool) pool = kv::PagePool::create(layout, layout.pages_of(options.context) + 1);
  if (!pool) return fail(std::move(pool).error());
  cache.pool = std::make_unique<kv::PagePool>(std::move(*pool));
  return cache;
}

}  // namespace cicada::engine
