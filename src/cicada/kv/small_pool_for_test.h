// For tests only: a pool of small pages, texts for them, and pages that tell whose they are.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "cicada/kv/sequence.h"

namespace cicada::kv {

inline constexpr std::size_t kSmallPage = 16;  // tokens

inline KvLayout small_layout(std::size_t page_tokens = kSmallPage) {
  return {
      {.num_kv_heads = 3, .head_dim = 16, .value_dim = 8, .layers = std::vector<LayerFormat>(2)},
      page_tokens};
}

inline PagePool small_pool(std::size_t num_pages) {
  auto pool = PagePool::create(small_layout(), num_pages);
  EXPECT_TRUE(pool.has_value());
  return std::move(*pool);
}

// `count` ids from `first` on.
inline std::vector<TokenId> ids_from(std::int32_t first, std::size_t count) {
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i < count; ++i) ids.emplace_back(first + static_cast<std::int32_t>(i));
  return ids;
}

// `ids` with its tail replaced from `begin` on.
inline std::vector<TokenId> diverging(std::vector<TokenId> ids, std::size_t begin) {
  for (std::size_t i = begin; i < ids.size(); ++i) ids[i] = TokenId(-ids[i].value - 1);
  return ids;
}

inline std::span<std::byte> page_bytes(PagePool& pool, PageId id) {
  return {pool.page(id), pool.layout().page_bytes()};
}

// Fills a page with bytes that follow from a number.
inline void mark(PagePool& pool, PageId id, unsigned number) {
  const std::span<std::byte> bytes = page_bytes(pool, id);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(number * 31 + i * 7 + i / 256);
  }
}

inline bool is_marked(PagePool& pool, PageId id, unsigned number) {
  const std::span<const std::byte> bytes = page_bytes(pool, id);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != static_cast<std::byte>(number * 31 + i * 7 + i / 256)) return false;
  }
  return true;
}

// A sequence of `pages` pages marked from `number` on.
inline Sequence marked_sequence(PagePool& pool, std::size_t pages, unsigned number) {
  Sequence sequence(pool);
  EXPECT_TRUE(sequence.reserve(pages * pool.layout().page_tokens()).has_value());
  for (const PageId id : sequence.pages()) mark(pool, id, number++);
  return sequence;
}

}  // namespace cicada::kv
