// The beginnings of texts whose keys and values are in the pool, as a tree of full pages.
//
// A node is a page under the page before it, found by its ids; the first page lies under a salt, so
// that texts with different salts share nothing. The tree is one holder of each of its pages. When
// the pool has none left, the least recently used page goes that nobody else holds and that has no
// page under it.
// Only pages computed wholly in the prefill role may be put in: the caller promises that
// (docs/numerics.md).
// Bounds: one node a page, so the pool bounds the tree.
// Threads: one at a time, the pool's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cicada/kv/page_pool.h"

namespace cicada::kv {

// The longest known beginning of some ids. Not held: valid until the pool's next allocation.
struct PrefixMatch {
  std::vector<PageId> pages;
  std::size_t tokens = 0;  // of the ids; the last page may match only in part
};

class PrefixTree : public PageReclaimer {
 public:
  // Lifetime: borrows the pool and becomes its reclaimer.
  explicit PrefixTree(PagePool& pool);
  ~PrefixTree() override;
  PrefixTree(const PrefixTree&) = delete;
  PrefixTree& operator=(const PrefixTree&) = delete;

  // Looks up ids and marks what it finds as used.
  PrefixMatch find(std::string_view salt, std::span<const TokenId> ids);

  // Holds the pages that are not in the tree yet; where there is one with the same ids, that stays.
  // Shapes: ids [pages * page_tokens]. Returns how many pages are new.
  std::size_t insert(std::string_view salt, std::span<const TokenId> ids,
                     std::span<const PageId> pages);

  std::size_t num_pages() const { return nodes_.size(); }
  std::uint64_t num_evictions() const { return evictions_; }

  bool reclaim() override;

  // Broken invariants stop the process: children and parents know each other, every page is held.
  void check_links() const;

 private:
  struct Node;
  using Ids = std::vector<TokenId>;
  struct Less {
    using is_transparent = void;
    bool operator()(std::span<const TokenId> a, std::span<const TokenId> b) const;
  };
  using Nodes = std::list<Node>;  // most recently used first, a parent before its children
  struct Node {
    PageId page;
    Node* parent = nullptr;             // nullptr: a root, which has no page
    const Ids* ids = nullptr;           // its key among the parent's children
    const std::string* salt = nullptr;  // a root's
    std::map<Ids, Nodes::iterator, Less> children;
  };

  // Longest common beginning of `ids` with a child of `node`; the child is the second.
  std::pair<std::size_t, Node*> closest_child(Node& node, std::span<const TokenId> ids) const;
  void mark_used(Node* deepest);
  void erase(Nodes::iterator node);

  PagePool* pool_;
  std::map<std::string, Node, std::less<>> roots_;  // by salt; each has children
  Nodes nodes_;
  std::uint64_t evictions_ = 0;
};

}  // namespace cicada::kv
