#include "cicada/api/openai_words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "cicada/chat/utf8.h"

namespace cicada::api {
namespace {

// OpenAI's number for what has no chance; an infinity is none in JSON.
float finite(float logprob) { return std::isfinite(logprob) ? logprob : -9999.0F; }

// A token as text. Part of a character is spelled in hexadecimal, so that nothing is lost to
// U+FFFD.
std::string printable(std::string_view bytes, std::string_view prefix) {
  if (!chat::first_invalid_utf8(bytes)) return std::string(bytes);
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out(prefix);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += "\\x";
    out += kHex[byte >> 4U];
    out += kHex[byte & 15U];
  }
  return out;
}

void write_chat_token(json::Writer& writer, const TokenText& token) {
  writer.field("token", printable(token.bytes, "")).field("logprob", finite(token.logprob));
  writer.key("bytes").begin_array();
  for (const char c : token.bytes)
    writer.number(static_cast<std::uint32_t>(static_cast<unsigned char>(c)));
  writer.end_array();
}

std::string completion_token(const TokenText& token) { return printable(token.bytes, "bytes:"); }

// The alternatives of one token, the token itself among them, each text once.
void write_alternatives(json::Writer& writer, const TokenLogprob& token) {
  std::vector<std::string> seen;
  const auto write = [&](const TokenText& text) {
    std::string key = completion_token(text);
    if (std::ranges::find(seen, key) != seen.end()) return;
    writer.field(key, finite(text.logprob));
    seen.push_back(std::move(key));
  };
  writer.begin_object();
  for (const TokenText& text : token.top) write(text);
  write(token.token);
  writer.end_object();
}

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

}  // namespace

std::string_view finish_word(StopReason reason) {
  switch (reason) {
    case StopReason::kEnd:
    case StopReason::kStopSequence:
      return "stop";
    case StopReason::kMaxTokens:
    case StopReason::kContextFull:
      return "length";
    case StopReason::kToolCalls:
      return "tool_calls";
  }
  return "stop";
}

void write_head(json::Writer& writer, const ReplyHead& head, std::string_view object) {
  writer.field("id", head.id).field("object", object);
  writer.field("created", head.created_unix_s).field("model", head.model);
}

void write_chat_logprobs(json::Writer& writer, std::span<const TokenLogprob> tokens) {
  writer.key("logprobs");
  if (tokens.empty()) {
    writer.null();
    return;
  }
  writer.begin_object().key("content").begin_array();
  for (const TokenLogprob& token : tokens) {
    writer.begin_object();
    write_chat_token(writer, token.token);
    writer.key("top_logprobs").begin_array();
    for (const TokenText& text : token.top) {
      writer.begin_object();
      write_chat_token(writer, text);
      writer.end_object();
    }
    writer.end_array().end_object();
  }
  writer.end_array().key("refusal").null().end_object();
}

void CompletionLogprobs::write(json::Writer& writer, std::span<const TokenLogprob> tokens) {
  writer.key("logprobs");
  if (tokens.empty()) {
    writer.null();
    return;
  }
  writer.begin_object().key("tokens").begin_array();
  for (const TokenLogprob& token : tokens) writer.string(completion_token(token.token));
  writer.end_array().key("token_logprobs").begin_array();
  for (const TokenLogprob& token : tokens) writer.number(finite(token.token.logprob));
  writer.end_array().key("top_logprobs");
  if (has_top_) {
    writer.begin_array();
    for (const TokenLogprob& token : tokens) write_alternatives(writer, token);
    writer.end_array();
  } else {
    writer.null();
  }
  writer.key("text_offset").begin_array();
  for (const TokenLogprob& token : tokens) writer.number(next_offset(token.token.bytes));
  writer.end_array().end_object();
}

// In characters; a token that goes on in a character has the offset of that one.
std::uint64_t CompletionLogprobs::next_offset(std::string_view bytes) {
  const bool is_inside = num_characters_ > 0 && !bytes.empty() && is_continuation(bytes.front());
  const std::uint64_t offset = num_characters_ - (is_inside ? 1 : 0);
  num_characters_ += static_cast<std::uint64_t>(
      std::ranges::count_if(bytes, [](char c) { return !is_continuation(c); }));
  return offset;
}

}  // namespace cicada::api
