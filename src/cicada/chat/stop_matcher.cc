#include "cicada/chat/stop_matcher.h"

#include <utility>

namespace cicada::chat {

StopMatcher::StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)), nodes_(1) {
  for (std::size_t i = 0; i < stops_.size(); ++i) {
    insert(stops_[i], static_cast<std::int32_t>(i));
  }
  link();
}

void StopMatcher::insert(std::string_view stop, std::int32_t index) {
  std::uint32_t node = 0;
  for (const char byte : stop) {
    std::uint32_t found = child(node, byte);
    if (found == 0) {
      found = static_cast<std::uint32_t>(nodes_.size());
      nodes_.push_back({.next_sibling = nodes_[node].first_child,
                        .depth = nodes_[node].depth + 1,
                        .byte = byte});
      nodes_[node].first_child = found;
    }
    node = found;
  }
  if (node != 0 && nodes_[node].stop < 0) nodes_[node].stop = index;
}

// Sets `fallback`, level by level, and lets every node know of shorter stop strings that end there.
void StopMatcher::link() {
  std::vector<std::uint32_t> level = {0};
  while (!level.empty()) {
    std::vector<std::uint32_t> below;
    for (const std::uint32_t parent : level) {
      for (std::uint32_t at = nodes_[parent].first_child; at != 0; at = nodes_[at].next_sibling) {
        Node& node = nodes_[at];
        if (parent != 0) node.fallback = next(nodes_[parent].fallback, node.byte);
        if (node.stop < 0) node.stop = nodes_[node.fallback].stop;
        below.push_back(at);
      }
    }
    level = std::move(below);
  }
}

std::uint32_t StopMatcher::child(std::uint32_t node, char byte) const {
  std::uint32_t at = nodes_[node].first_child;
  while (at != 0 && nodes_[at].byte != byte) at = nodes_[at].next_sibling;
  return at;
}

std::uint32_t StopMatcher::next(std::uint32_t node, char byte) const {
  for (;;) {
    const std::uint32_t found = child(node, byte);
    if (found != 0 || node == 0) return found;
    node = nodes_[node].fallback;
  }
}

StopMatcher::Piece StopMatcher::add(std::string_view text) {
  Piece piece;
  if (nodes_.size() == 1) {
    piece.text = text;
    return piece;
  }
  std::size_t num_read = 0;
  while (num_read < text.size() && !piece.matched) {
    state_ = next(state_, text[num_read++]);
    if (const std::int32_t stop = nodes_[state_].stop; stop >= 0) {
      piece.matched = static_cast<std::size_t>(stop);
    }
  }
  held_ += text.substr(0, num_read);
  const std::size_t kept = piece.matched ? stops_[*piece.matched].size() : nodes_[state_].depth;
  const std::size_t end = held_.size() - kept;
  piece.text.assign(held_, held_begin_, end - held_begin_);
  held_begin_ = end;
  // Moved to the front only when that is less than what has passed: linear in all.
  if (held_begin_ > kept) {
    held_.erase(0, held_begin_);
    held_begin_ = 0;
  }
  return piece;
}

std::string StopMatcher::finish() {
  std::string rest = held_.substr(held_begin_);
  held_.clear();
  held_begin_ = 0;
  state_ = 0;
  return rest;
}

}  // namespace cicada::chat
