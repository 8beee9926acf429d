// Holds frames of a stream back as the client asked for (SPEC M22): not at all, until so many bytes
// are there, until a word has ended, or for a time (which the caller keeps).
// Threads: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cicada/api/error.h"
#include "cicada/api/request.h"

namespace cicada::server {

// What the header `x-anthropic-stream-buffer` asks for: a number of bytes, 0: at once. Errors: 400.
api::Parsed<api::BufferHint> parse_stream_buffer(std::string_view header);

class StreamBuffer {
 public:
  void set_hint(const api::BufferHint& hint) { hint_ = hint; }
  const api::BufferHint& hint() const { return hint_; }

  // Frames that hold no text: they end a word, if one is open.
  void add(std::string_view frames);
  // Frames of a piece of text. A word ends where a piece ends in a blank, or the next begins with
  // one; pieces are not split.
  void add_text(std::string_view frames, std::string_view text);
  // What may be sent now, with everything before it; often nothing.
  std::string take_ready();
  std::string take_all();
  bool is_empty() const { return held_.empty(); }

 private:
  std::string take(std::size_t bytes);

  api::BufferHint hint_;
  std::string held_;
  std::size_t whole_words_bytes_ = 0;  // of held_
};

}  // namespace cicada::server
