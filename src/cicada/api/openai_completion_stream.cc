// Text completion chunks.
#include <string>
#include <vector>

#include "cicada/api/frames.h"
#include "cicada/api/openai_words.h"
#include "cicada/api/reply_writers.h"
#include "cicada/api/usage_json.h"
#include "cicada/json/writer.h"

namespace cicada::api {
namespace {

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
  write_head(writer, head_, "text_completion");
  writer.key("choices").begin_array().begin_object();
  writer.field("index", choice).field("text", text);
  logprobs_.at(choice).write(writer, logprobs);
  writer.key("finish_reason");
  if (finish_reason.empty()) {
    writer.null();
  } else {
    writer.string(finish_reason);
  }
  writer.end_object().end_array();
  if (include_usage_) writer.key("usage").null();
  writer.end_object();
  return data_frame(writer.take());
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
  std::string frames;
  if (include_usage_) {
    json::Writer writer;
    writer.begin_object();
    write_head(writer, head_, "text_completion");
    writer.key("choices").begin_array().end_array();
    write_openai_usage(writer, usage);
    writer.end_object();
    frames = data_frame(writer.take());
  }
  return frames += data_frame("[DONE]");
}

}  // namespace

std::unique_ptr<ReplyWriter> make_openai_completion_stream(const GenerateRequest& request,
                                                           const ReplyHead& head) {
  return std::make_unique<OpenAiCompletionStream>(request, head);
}

}  // namespace cicada::api
