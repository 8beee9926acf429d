// Finds stop strings in a text that comes in pieces, and lets nothing of one out.
//
// What may still become a stop string is held back until that is decided. Of several, the one whose
// end comes first counts; of those with the same end, the longest.
// Threads: one thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cicada::chat {

class StopMatcher {
 public:
  // `stops`: not empty strings.
  explicit StopMatcher(std::vector<std::string> stops);

  struct Piece {
    std::string text;                    // certain: no part of a stop string
    std::optional<std::size_t> matched;  // index of the stop string that ended the text
  };
  // Precondition: nothing has matched. Time: linear in all the text.
  Piece add(std::string_view text);
  // What is still held back.
  std::string finish();

 private:
  std::vector<std::string> stops_;
  std::string held_;
};

}  // namespace cicada::chat
