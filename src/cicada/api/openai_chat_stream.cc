// Chat completion chunks.
#include <string>

#include "cicada/api/frames.h"
#include "cicada/api/openai_chunks.h"
#include "cicada/api/openai_words.h"
#include "cicada/api/reply_writers.h"
#include "cicada/json/writer.h"

namespace cicada::api {
namespace {

constexpr std::string_view kObject = "chat.completion.chunk";

class OpenAiChatStream final : public ReplyWriter {
 public:
  OpenAiChatStream(const GenerateRequest& request, const ReplyHead& head)
      : head_(head),
        num_choices_(num_choices(request)),
        wants_logprobs_(request.wants_logprobs),
        include_usage_(request.include_usage) {}

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
  std::string ping() override { return comment_frame(); }
  std::string error(const ApiError& error) override { return data_frame(error_object(error)); }

 private:
  // A chunk up to the inside of its one choice's delta.
  json::Writer begin_delta(std::uint32_t choice) const;
  // Closes the delta and what is around it.
  std::string end_delta(json::Writer& writer, std::span<const TokenLogprob> logprobs,
                        std::string_view finish_reason) const;

  const ReplyHead head_;
  const std::uint32_t num_choices_;
  const bool wants_logprobs_;
  const bool include_usage_;
};

json::Writer OpenAiChatStream::begin_delta(std::uint32_t choice) const {
  json::Writer writer;
  writer.begin_object();
  write_head(writer, head_, kObject);
  writer.key("choices").begin_array().begin_object().field("index", choice);
  writer.key("delta").begin_object();
  return writer;
}

std::string OpenAiChatStream::end_delta(json::Writer& writer,
                                        std::span<const TokenLogprob> logprobs,
                                        std::string_view finish_reason) const {
  writer.end_object();
  write_chat_logprobs(writer, logprobs);
  return end_chunk(writer, finish_reason, include_usage_);
}

// Every choice begins here, in order: clients append a choice when they first see it.
std::string OpenAiChatStream::begin(const Usage& /*usage*/) {
  std::string frames;
  for (std::uint32_t choice = 0; choice < num_choices_; ++choice) {
    json::Writer writer = begin_delta(choice);
    writer.field("role", "assistant").field("content", "");
    frames += end_delta(writer, {}, {});
  }
  return frames;
}

std::string OpenAiChatStream::text(std::uint32_t choice, std::string_view text,
                                   std::span<const TokenLogprob> logprobs) {
  if (!wants_logprobs_) logprobs = {};
  if (text.empty() && logprobs.empty()) return {};
  json::Writer writer = begin_delta(choice);
  writer.field("content", text);
  return end_delta(writer, logprobs, {});
}

std::string OpenAiChatStream::thinking(std::uint32_t choice, std::string_view text) {
  if (text.empty()) return {};
  json::Writer writer = begin_delta(choice);
  writer.field("reasoning_content", text);
  return end_delta(writer, {}, {});
}

// Clients join what they get for an index: id, type and name are said once.
std::string OpenAiChatStream::tool_call(std::uint32_t choice, std::uint32_t call,
                                        std::string_view id, std::string_view name) {
  json::Writer writer = begin_delta(choice);
  writer.key("tool_calls").begin_array().begin_object();
  writer.field("index", call).field("id", id).field("type", "function");
  writer.key("function").begin_object().field("name", name).field("arguments", "").end_object();
  writer.end_object().end_array();
  return end_delta(writer, {}, {});
}

std::string OpenAiChatStream::tool_arguments(std::uint32_t choice, std::uint32_t call,
                                             std::string_view json_piece) {
  if (json_piece.empty()) return {};
  json::Writer writer = begin_delta(choice);
  writer.key("tool_calls").begin_array().begin_object().field("index", call);
  writer.key("function").begin_object().field("arguments", json_piece).end_object();
  writer.end_object().end_array();
  return end_delta(writer, {}, {});
}

std::string OpenAiChatStream::finish(std::uint32_t choice, StopReason reason,
                                     std::string_view /*stop_sequence*/) {
  json::Writer writer = begin_delta(choice);
  return end_delta(writer, {}, finish_word(reason));
}

std::string OpenAiChatStream::end(const Usage& usage) {
  return include_usage_ ? usage_frame(head_, kObject, usage) + done_frame() : done_frame();
}

}  // namespace

std::unique_ptr<ReplyWriter> make_openai_chat_stream(const GenerateRequest& request,
                                                     const ReplyHead& head) {
  return std::make_unique<OpenAiChatStream>(request, head);
}

}  // namespace cicada::api
