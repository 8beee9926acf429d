// Text completion chunks.
#include <string>
#include <vector>

#include "cicada/api/frames.h"
#include "cicada/api/openai_chunks.h"
#include "cicada/api/openai_words.h"
#include "cicada/api/reply_writers.h"
#include "cicada/json/writer.h"

namespace cicada::api {
namespace {

constexpr std::string_view kObject = "text_completion";

class OpenAiCompletionStream final : public ReplyWriter {
 public:
  OpenAiCompletionStream(const GenerateRequest& request, const ReplyHead& head)
      : head_(head),
        wants_logprobs_(request.wants_logprobs),
        include_usage_(request.include_usage),
        logprobs_(num_choices(request), CompletionLogprobs(request.top_logprobs > 0)) {}

  std::string begin(const Usage& /*usage*/) override { return {}; }
  std::string text(std::uint32_t choice, std::string_view text,
                   std::span<const TokenLogprob> logprobs) override;
  // A completion is text and nothing else.
  std::string thinking(std::uint32_t choice, std::string_view text) override {
    return this->text(choice, text, {});
  }
  std::string tool_call(std::uint32_t /*choice*/, std::uint32_t /*call*/, std::string_view /*id*/,
                        std::string_view /*name*/) override {
    return {};
  }
  std::string tool_arguments(std::uint32_t choice, std::uint32_t /*call*/,
                             std::string_view json_piece) override {
    return text(choice, json_piece, {});
  }
  std::string finish(std::uint32_t choice, StopReason reason,
                     std::string_view stop_sequence) override;
  std::string end(const Usage& usage) override;
  std::string ping() override { return comment_frame(); }
  std::string error(const ApiError& error) override { return data_frame(error_object(error)); }

 private:
  std::string chunk(std::uint32_t choice, std::string_view text,
                    std::span<const TokenLogprob> logprobs, std::string_view finish_reason);

  const ReplyHead head_;
  const bool wants_logprobs_;
  const bool include_usage_;
  std::vector<CompletionLogprobs> logprobs_;  // by choice
};

std::string OpenAiCompletionStream::chunk(std::uint32_t choice, std::string_view text,
                                          std::span<const TokenLogprob> logprobs,
                                          std::string_view finish_reason) {
  json::Writer writer;
  writer.begin_object();
  write_head(writer, head_, kObject);
  writer.key("choices").begin_array().begin_object();
  writer.field("index", choice).field("text", text);
  logprobs_.at(choice).write(writer, logprobs);
  return end_chunk(writer, finish_reason, include_usage_);
}

std::string OpenAiCompletionStream::text(std::uint32_t choice, std::string_view text,
                                         std::span<const TokenLogprob> logprobs) {
  if (!wants_logprobs_) logprobs = {};
  if (text.empty() && logprobs.empty()) return {};
  return chunk(choice, text, logprobs, {});
}

std::string OpenAiCompletionStream::finish(std::uint32_t choice, StopReason reason,
                                           std::string_view /*stop_sequence*/) {
  return chunk(choice, {}, {}, finish_word(reason));
}

std::string OpenAiCompletionStream::end(const Usage& usage) {
  return include_usage_ ? usage_frame(head_, kObject, usage) + done_frame() : done_frame();
}

}  // namespace

std::unique_ptr<ReplyWriter> make_openai_completion_stream(const GenerateRequest& request,
                                                           const ReplyHead& head) {
  return std::make_unique<OpenAiCompletionStream>(request, head);
}

}  // namespace cicada::api
