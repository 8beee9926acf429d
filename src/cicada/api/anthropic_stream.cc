// Anthropic's events. Blocks are numbered from 0 as they open, and one is closed before the next
// opens: clients append blocks and index into them.
#include <string>

#include "cicada/api/anthropic_words.h"
#include "cicada/api/frames.h"
#include "cicada/api/reply_writers.h"
#include "cicada/api/usage_json.h"
#include "cicada/json/writer.h"

namespace cicada::api {
namespace {

class AnthropicStream final : public ReplyWriter {
 public:
  AnthropicStream(const GenerateRequest& request, const ReplyHead& head)
      : head_(head), hides_thinking_(request.hides_thinking) {}

  std::string begin(const Usage& usage) override;
  std::string text(std::uint32_t choice, std::string_view text,
                   std::span<const TokenLogprob> logprobs) override;
  std::string thinking(std::uint32_t choice, std::string_view text) override;
  std::string tool_call(std::uint32_t choice, std::uint32_t call, std::string_view id,
                        std::string_view name) override;
  std::string tool_arguments(std::uint32_t choice, std::uint32_t call,
                             std::string_view json_piece) override;
  std::string finish(std::uint32_t choice, StopReason reason,
                     std::string_view stop_sequence) override;
  std::string end(const Usage& usage) override;
  std::string ping() override;
  std::string error(const ApiError& error) override;

 private:
  enum class Block : std::uint8_t { kNone, kText, kThinking, kToolUse };

  // Closes the open block unless it is of this kind, and opens one.
  std::string switch_to(Block kind);
  std::string open_block(Block kind, std::string_view id, std::string_view name);
  std::string close_block();
  std::string delta(std::string_view type, std::string_view key, std::string_view value) const;

  const ReplyHead head_;
  const bool hides_thinking_;
  Block open_ = Block::kNone;
  std::uint32_t num_blocks_ = 0;  // the open one counted
  StopReason reason_ = StopReason::kEnd;
  std::string stop_sequence_;
};

std::string AnthropicStream::begin(const Usage& usage) {
  json::Writer writer;
  writer.begin_object().field("type", "message_start").key("message").begin_object();
  writer.field("id", head_.id).field("type", "message").field("role", "assistant");
  writer.field("model", head_.model).key("content").begin_array().end_array();
  writer.key("stop_reason").null().key("stop_sequence").null();
  write_anthropic_usage(writer, usage, UsagePlace::kStart);
  writer.end_object().end_object();
  return event_frame("message_start", writer.take());
}

std::string AnthropicStream::text(std::uint32_t /*choice*/, std::string_view text,
                                  std::span<const TokenLogprob> /*logprobs*/) {
  if (text.empty()) return {};
  std::string frames = switch_to(Block::kText);
  return frames += delta("text_delta", "text", text);
}

std::string AnthropicStream::thinking(std::uint32_t /*choice*/, std::string_view text) {
  if (text.empty()) return {};
  std::string frames = switch_to(Block::kThinking);
  if (!hides_thinking_) frames += delta("thinking_delta", "thinking", text);
  return frames;
}

std::string AnthropicStream::tool_call(std::uint32_t /*choice*/, std::uint32_t /*call*/,
                                       std::string_view id, std::string_view name) {
  std::string frames = close_block();
  frames += open_block(Block::kToolUse, id, name);
  return frames += delta("input_json_delta", "partial_json", "");
}

std::string AnthropicStream::tool_arguments(std::uint32_t /*choice*/, std::uint32_t /*call*/,
                                            std::string_view json_piece) {
  return json_piece.empty() ? std::string() : delta("input_json_delta", "partial_json", json_piece);
}

std::string AnthropicStream::finish(std::uint32_t /*choice*/, StopReason reason,
                                    std::string_view stop_sequence) {
  reason_ = reason;
  stop_sequence_ = stop_sequence;
  return close_block();
}

std::string AnthropicStream::end(const Usage& usage) {
  json::Writer writer;
  writer.begin_object().field("type", "message_delta").key("delta").begin_object();
  write_stop_reason(writer, reason_, stop_sequence_);
  writer.end_object();
  write_anthropic_usage(writer, usage, UsagePlace::kDelta);
  writer.end_object();
  std::string frames = event_frame("message_delta", writer.take());
  return frames += event_frame("message_stop", R"({"type":"message_stop"})");
}

std::string AnthropicStream::ping() { return event_frame("ping", R"({"type":"ping"})"); }

std::string AnthropicStream::error(const ApiError& error) {
  return event_frame("error", error_body(error, head_.request_id));
}

std::string AnthropicStream::switch_to(Block kind) {
  if (open_ == kind) return {};
  std::string frames = close_block();
  return frames += open_block(kind, {}, {});
}

std::string AnthropicStream::open_block(Block kind, std::string_view id, std::string_view name) {
  open_ = kind;
  json::Writer writer;
  writer.begin_object().field("type", "content_block_start").field("index", num_blocks_++);
  writer.key("content_block").begin_object();
  if (kind == Block::kText) {
    writer.field("type", "text").field("text", "");
  } else if (kind == Block::kThinking) {
    writer.field("type", "thinking").field("thinking", "").field("signature", "");
  } else {
    writer.field("type", "tool_use").field("id", id).field("name", name);
    writer.key("input").begin_object().end_object();
  }
  writer.end_object().end_object();
  return event_frame("content_block_start", writer.take());
}

std::string AnthropicStream::close_block() {
  if (open_ == Block::kNone) return {};
  std::string frames;
  if (open_ == Block::kThinking) {
    frames = delta("signature_delta", "signature", kThinkingSignature);
  }
  open_ = Block::kNone;
  json::Writer writer;
  writer.begin_object().field("type", "content_block_stop").field("index", num_blocks_ - 1);
  writer.end_object();
  return frames += event_frame("content_block_stop", writer.take());
}

std::string AnthropicStream::delta(std::string_view type, std::string_view key,
                                   std::string_view value) const {
  json::Writer writer;
  writer.begin_object().field("type", "content_block_delta").field("index", num_blocks_ - 1);
  writer.key("delta").begin_object().field("type", type).field(key, value);
  writer.end_object().end_object();
  return event_frame("content_block_delta", writer.take());
}

}  // namespace

std::unique_ptr<ReplyWriter> make_anthropic_stream(const GenerateRequest& request,
                                                   const ReplyHead& head) {
  return std::make_unique<AnthropicStream>(request, head);
}

}  // namespace cicada::api
