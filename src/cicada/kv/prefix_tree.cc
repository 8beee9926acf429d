#include "cicada/kv/prefix_tree.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "cicada/base/check.h"

namespace cicada::kv {

bool PrefixTree::Less::operator()(std::span<const TokenId> a, std::span<const TokenId> b) const {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
}

PrefixTree::PrefixTree(PagePool& pool) : pool_(&pool) { pool.set_reclaimer(this); }

PrefixTree::~PrefixTree() {
  for (const Node& node : nodes_) {
    pool_->set_spare(node.page, false);
    pool_->release(node.page);
  }
  pool_->set_reclaimer(nullptr);
}

std::pair<std::size_t, PrefixTree::Node*> PrefixTree::closest_child(
    Node& node, std::span<const TokenId> ids) const {
  std::pair<std::size_t, Node*> best{0, nullptr};
  const std::span<const TokenId> page =
      ids.first(std::min(ids.size(), pool_->layout().page_tokens()));
  const auto consider = [&](auto child) {
    const auto same = static_cast<std::size_t>(
        std::mismatch(page.begin(), page.end(), child->first.begin()).first - page.begin());
    if (same > best.first) best = {same, &*child->second};
  };
  // In the order of ids, what has most in common with a key stands right before or after its place.
  const auto after = node.children.lower_bound(page);
  if (after != node.children.end()) consider(after);
  if (after != node.children.begin()) consider(std::prev(after));
  return best;
}

PrefixMatch PrefixTree::find(std::string_view salt, std::span<const TokenId> ids) {
  PrefixMatch match;
  const auto root = roots_.find(salt);
  if (root == roots_.end()) return match;
  Node* node = &root->second;
  while (match.tokens < ids.size()) {
    const auto [same, child] = closest_child(*node, ids.subspan(match.tokens));
    if (child == nullptr) break;
    match.pages.push_back(child->page);
    match.tokens += same;
    node = child;
    if (same < pool_->layout().page_tokens()) break;
  }
  mark_used(node);
  return match;
}

std::size_t PrefixTree::insert(std::string_view salt, std::span<const TokenId> ids,
                               std::span<const PageId> pages) {
  const std::size_t page_tokens = pool_->layout().page_tokens();
  CICADA_CHECK(ids.size() == pages.size() * page_tokens, "only full pages enter the tree");
  if (pages.empty()) return 0;
  std::size_t added = 0;
  const auto root = roots_.try_emplace(std::string(salt)).first;
  root->second.salt = &root->first;
  Node* node = &root->second;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    const auto key = ids.subspan(i * page_tokens, page_tokens);
    auto child = node->children.find(key);
    if (child == node->children.end()) {
      pool_->retain(pages[i]);
      pool_->set_spare(pages[i], true);
      nodes_.push_front({.page = pages[i], .parent = node});
      child = node->children.try_emplace(Ids(key.begin(), key.end()), nodes_.begin()).first;
      child->second->ids = &child->first;
      ++added;
    }
    node = &*child->second;
  }
  mark_used(node);
  return added;
}

// Of a path the deepest goes to the front first, so that parents stand before their children.
void PrefixTree::mark_used(Node* deepest) {
  for (Node* node = deepest; node->parent != nullptr; node = node->parent) {
    nodes_.splice(nodes_.begin(), nodes_, node->parent->children.find(*node->ids)->second);
  }
}

bool PrefixTree::reclaim() {
  // What others hold is in use: it goes to the front, and is not looked at again soon.
  for (std::size_t left = nodes_.size(); left > 0; --left) {
    const auto last = std::prev(nodes_.end());
    if (last->children.empty() && pool_->num_holders(last->page) == 1) {
      erase(last);
      ++evictions_;
      return true;
    }
    nodes_.splice(nodes_.begin(), nodes_, last);
  }
  return false;
}

void PrefixTree::erase(Nodes::iterator node) {
  Node* parent = node->parent;
  pool_->set_spare(node->page, false);
  pool_->release(node->page);
  parent->children.erase(parent->children.find(*node->ids));
  nodes_.erase(node);
  if (parent->parent == nullptr && parent->children.empty()) {
    roots_.erase(roots_.find(*parent->salt));
  }
}

void PrefixTree::check_links() const {
  std::size_t linked = 0;
  const auto check_children = [&linked](const Node& node) {
    for (const auto& [ids, child] : node.children) {
      CICADA_CHECK(child->parent == &node && child->ids == &ids, "a child knows its parent");
      ++linked;
    }
  };
  for (const auto& [salt, root] : roots_) {
    CICADA_CHECK(!root.children.empty(), "a root has a page");
    check_children(root);
  }
  for (const Node& node : nodes_) {
    CICADA_CHECK(pool_->num_holders(node.page) > 0, "a page of the tree is held");
    check_children(node);
  }
  CICADA_CHECK(linked == nodes_.size(), "every page hangs in the tree");
}

}  // namespace cicada::kv
