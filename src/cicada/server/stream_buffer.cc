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

void StreamBuffer::add(std::string_view frames) {
  held_ += frames;
  whole_words_bytes_ = held_.size();
}

void StreamBuffer::add_text(std::string_view frames, std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; };
  if (!text.empty() && is_blank(text.front())) whole_words_bytes_ = held_.size();
  held_ += frames;
  if (!text.empty() && is_blank(text.back())) whole_words_bytes_ = held_.size();
}

std::string StreamBuffer::take_ready() {
  switch (hint_.unit) {
    case api::BufferHint::Unit::kToken:
      return take_all();
    case api::BufferHint::Unit::kBytes:
      return held_.size() >= hint_.amount ? take_all() : std::string();
    case api::BufferHint::Unit::kWord:
      return take(std::exchange(whole_words_bytes_, 0));
    case api::BufferHint::Unit::kMilliseconds:
      return hint_.amount == 0 ? take_all() : std::string();
  }
  return take_all();
}

std::string StreamBuffer::take_all() {
  whole_words_bytes_ = 0;
  return std::exchange(held_, {});
}

std::string StreamBuffer::take(std::size_t bytes) {
  std::string taken = held_.substr(0, bytes);
  held_.erase(0, bytes);
  return taken;
}

}  // namespace cicada::server
