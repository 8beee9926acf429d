// Finds stop strings in a text that comes in pieces, and lets nothing of one out.
//
// What may still become a stop string is held back until that is decided. Of several, the one whose
// end comes first counts; of those with the same end, the longest (of equal ones, the first).
// Aho and Corasick's automaton: one state, one pass. Memory: some twenty bytes for each byte of the
// stop strings, and what is held back, which is shorter than the longest of them.
// Threads: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cicada::chat {

class StopMatcher {
 public:
  // `stops`: not empty strings; how many and how long they are is bounded by the caller.
  explicit StopMatcher(std::vector<std::string> stops);

  struct Piece {
    std::string text;                    // certain: no part of a stop string
    std::optional<std::size_t> matched;  // index of the stop string that ended the text
  };
  // Precondition: nothing has matched. Time: linear in all the text, times at most the number of
  // stop strings that begin alike.
  Piece add(std::string_view text);
  // What is still held back.
  std::string finish();

 private:
  // Stands for the bytes on its way from the root, the longest end of the text that begins a stop
  // string.
  struct Node {
    std::uint32_t first_child = 0;  // 0: none
    std::uint32_t next_sibling = 0;
    std::uint32_t fallback = 0;  // the node of the longest proper end of these bytes
    std::uint32_t depth = 0;     // how many bytes they are
    std::int32_t stop = -1;      // the longest stop string that ends here; negative: none
    char byte = '\0';            // the last of them
  };

  void insert(std::string_view stop, std::int32_t index);
  void link();
  std::uint32_t child(std::uint32_t node, char byte) const;  // 0: none
  std::uint32_t next(std::uint32_t node, char byte) const;

  std::vector<std::string> stops_;
  std::vector<Node> nodes_;  // the first is the root
  std::uint32_t state_ = 0;
  std::string held_;            // ends with the bytes that state_ stands for …
  std::size_t held_begin_ = 0;  // … which begin here; what is before was given out
};

}  // namespace cicada::chat
