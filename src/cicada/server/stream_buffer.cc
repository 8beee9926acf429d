#include "cicada/server/stream_buffer.h"

#include <charconv>
#include <utility>

namespace cicada::server {

api::Parsed<api::BufferHint> parse_stream_buffer(std::string_view header) {
  std::uint32_t bytes = 0;
  const auto [end, error] = std::from_chars(header.data(), header.data() + header.size(), bytes);
  constexpr std::uint32_t kMost = 1U << 20;
  if (error != std::errc() || end != header.data() + header.size() || bytes > kMost) {
    return fail(api::make_api_error(
        400, fmt::format("x-anthropic-stream-buffer: is \"{}\", a number of bytes from 0 to {} is "
                         "allowed",
                         header.substr(0, 64), kMost)));
  }
  return api::BufferHint{.unit = api::BufferHint::Unit::kBytes, .amount = bytes};
}

void StreamBuffer::note_text(std::string_view text) {
  if (text.empty()) return;
  const char last = text.back();
  ends_word_ = last == ' ' || last == '\n' || last == '\t';
}

std::string StreamBuffer::take_ready() {
  switch (hint_.unit) {
    case api::BufferHint::Unit::kToken:
      return take_all();
    case api::BufferHint::Unit::kBytes:
      return held_.size() >= hint_.amount ? take_all() : std::string();
    case api::BufferHint::Unit::kWord:
      return ends_word_ ? take_all() : std::string();
    case api::BufferHint::Unit::kMilliseconds:
      return hint_.amount == 0 ? take_all() : std::string();
  }
  return take_all();
}

std::string StreamBuffer::take_all() {
  ends_word_ = false;
  return std::exchange(held_, {});
}

}  // namespace cicada::server
